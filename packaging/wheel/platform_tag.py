"""Hatchling's hook that says for which machines the wheel is: it has a program and a library, but none for Python itself, so any Python
will do."""

from __future__ import annotations

import os

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class PlatformTag(BuildHookInterface):
    """Sets the tag that scripts/dist.py asks for, such as `manylinux_2_28_x86_64`."""

    def initialize(self, version: str, build_data: dict) -> None:
        """Called by hatchling before it packs."""
        build_data["pure_python"] = False
        build_data["tag"] = f"py3-none-{os.environ['TIDEGATE_PLATFORM_TAG']}"
