"""fpinq demo --page: a made-up town with its page, for as long as one looks at it."""

import json
import re
import signal
import subprocess
import sys
import urllib.request
from pathlib import Path


def test_the_town_is_served_with_a_token_for_each_role_and_leaves_nothing(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "fpinq", "demo", "--page", "--no-open"]
    environment = {"PATH": "/usr/bin:/bin", "TMPDIR": str(tmp_path)}
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) as running:
        try:
            assert running.stdout is not None
            found = {}
            while len(found) < 3:
                line = running.stdout.readline()
                assert line, "it ended"
                if told := re.search(r", (\w+) +(http://[^/]+)/#token=(\S+)", line):
                    found[told[1]] = told[2], told[3]
            for role, (url, token) in found.items():
                assert b"<title>fpinq" in urllib.request.urlopen(url, timeout=30).read()
                asked = urllib.request.Request(f"{url}/me", headers={"Authorization": f"Bearer {token}"})
                assert json.load(urllib.request.urlopen(asked, timeout=30))["role"] == role
        finally:
            running.send_signal(signal.SIGINT)
            running.wait(30)
    assert not list(tmp_path.glob("fpinq-demo-*"))
