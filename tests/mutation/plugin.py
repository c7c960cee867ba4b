"""A pytest plugin that imports one module of the model in a mutated form, in this process only.

MUTANT names a file with the module's name in its first line and its source below.
"""

import os
import sys
from importlib.abc import InspectLoader, MetaPathFinder
from importlib.machinery import ModuleSpec
from importlib.util import spec_from_loader
from pathlib import Path
from typing import Any


class Mutated(MetaPathFinder, InspectLoader):
    """Finds the one module, and gives it the mutated source."""

    def __init__(self, module: str, source: str) -> None:
        self.module, self.source = module, source

    def find_spec(self, fullname: str, path: Any, target: Any = None) -> ModuleSpec | None:
        return spec_from_loader(fullname, self) if fullname == self.module else None

    def get_source(self, fullname: str) -> str:
        return self.source

    def is_package(self, fullname: str) -> bool:
        return False


if "MUTANT" in os.environ:
    name, _, text = Path(os.environ["MUTANT"]).read_text(encoding="utf-8").partition("\n")
    assert name not in sys.modules, "the module was imported before it was mutated"
    sys.meta_path.insert(0, Mutated(name, text))
