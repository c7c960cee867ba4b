"""docs/how-to/http.md, as it is written: with curl, and with R where there is one."""

import json
import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from fpinq.cli.town import made_up
from server.live import serve

PAGE = (Path(__file__).parents[2] / "docs/how-to/http.md").read_text(encoding="utf-8")


def written(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", PAGE, re.DOTALL)


def run(command: list[str], url: str, token: str) -> str:
    environment = {**os.environ, "FPINQ_URL": url, "FPINQ_TOKEN": token}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.skipif(shutil.which("curl") is None, reason="no curl")
def test_the_commands_for_curl_do_what_they_say(tmp_path: Path) -> None:
    quote, asked, again, more, found = written("sh")
    with serve(tmp_path, made_up(people=500)) as live:
        token = live.token()
        assert json.loads(run(["sh", "-c", quote], live.url, token))["prices"][0]["price"] == "1/10"
        told = json.loads(run(["sh", "-c", asked], live.url, token))
        assert [each["key"] for each in told["answers"]] == [[0], [1]]
        tables = run(["sh", "-c", again], live.url, token)
        assert tables.startswith("bin_lower,bin_upper,n,low,high,standard_error")
        assert "gender,average_age,low,high,standard_error" in tables
        assert tables.endswith('"role":"analyst"}') or '"role":"analyst"' in tables
        run(["sh", "-c", more], live.url, token)
        discovery = json.loads(run(["sh", "-c", found], live.url, token))["discovery"]
        assert 0 < discovery["threshold"] < discovery["shown_from"]
        kinds = [
            each["question"]["kind"] for each in live.send("GET", "/questions", token=token).json["questions"]
        ]
        assert kinds[:3] == ["regression", "correlation", "top"]


@pytest.mark.skipif(shutil.which("Rscript") is None, reason="no R")
def test_the_program_for_r_asks(tmp_path: Path) -> None:
    (program,) = written("r")
    with serve(tmp_path, made_up(people=500)) as live:
        assert re.search(r"\[1\]\s+-?\d+\s+-?\d+", run(["Rscript", "-e", program], live.url, live.token()))


def test_the_question_of_power_query_is_one(tmp_path: Path) -> None:
    (record,) = re.findall(r"Question = \[(.*?)\],\n", PAGE)
    question = dict(re.findall(r"(\w+) = \"(.*?)\"", record))
    with serve(tmp_path, made_up(people=500)) as live:
        token = live.token()
        first = live.send("POST", "/questions?format=csv", question, token)
        assert first.status == 200, first.body
        assert live.send("POST", "/questions?format=csv", question, token).body == first.body
