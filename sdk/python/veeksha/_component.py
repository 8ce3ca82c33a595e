"""The module that becomes the component: what `plugin build` calls for a plugin's folder."""

from __future__ import annotations

import gc
import importlib
import importlib.util
import json
import os
import sys
from types import ModuleType
from typing import Any, NoReturn

from . import _exports, _report, _returns, _sandbox, blobs, draws, log, tokens
from ._contract import CLASSES
from .error import Error
from ._plugin import config_type, registered
from .schema import schema


class Descriptor:
    """The description of a plugin."""

    def __init__(self, name: str, version: str, summary: str, config_schema: str) -> None:
        self.name = name
        self.version = version
        self.summary = summary
        self.config_schema = config_schema


def export(
    namespace: dict[str, Any],
    *,
    module: str,
    kinds: list[str],
    name: str,
    version: str,
    summary: str,
) -> None:
    """Makes a plugin's module a component.

    Args:
        namespace: the globals of the module that the component is made of.
        module: the plugin's module.
        kinds: the kinds that the manifest states.
        name: the plugin's name.
        version: its version.
        summary: its summary, in one line.
    """
    _connect()
    _sandbox.install()
    file = _import(module)
    _report.set_root(os.path.dirname(file), "src/")
    _require_kinds(kinds, module)
    for kind in kinds:
        cls = registered[kind]
        try:
            config_schema = json.dumps(schema(config_type(cls)))
        except TypeError as error:
            _fail(str(error))
        _returns.watch(cls)
        exported = _exports.EXPORTS[kind]
        descriptor = Descriptor(name, version, summary, config_schema)
        namespace[exported.protocol] = _describing(descriptor)
        # The runtime looks for resources in a top-level module with the name of the interface.
        resources = ModuleType(exported.module)
        resources.__dict__.update(exported.resources)
        sys.modules[exported.module] = resources
    # The memory of the built component is shared by all instances until they write to it. A
    # collection writes to every object that it visits; it skips frozen ones.
    gc.collect()
    gc.freeze()


def _connect() -> None:
    """Connects this package with the generated modules and the functions of the host."""
    from componentize_py_types import Err  # type: ignore[import-not-found]

    for generated, classes in CLASSES.items():
        if importlib.util.find_spec(generated) is not None:
            vars(importlib.import_module(generated)).update(classes)
    _exports.set_error_wrapper(Err)
    log.set_host_log(importlib.import_module("wit_world.imports.log").write)
    draws.set_host_words(importlib.import_module("wit_world.imports.random").words)
    for host, module in (("tokens", tokens), ("blobs", blobs)):
        generated = f"wit_world.imports.{host}"
        if importlib.util.find_spec(generated) is not None:
            module.set_host(importlib.import_module(generated))


def _import(module: str) -> str:
    """Imports the plugin's module and returns its file."""
    try:
        imported = importlib.import_module(module)
    except BaseException as error:  # noqa: BLE001 - whatever a module raises
        file = getattr(importlib.util.find_spec(module), "origin", None) or ""
        _report.set_root(os.path.dirname(file), "src/")
        lines = "\n".join(_report.traceback_lines(error))
        hint = error.hint if isinstance(error, (Error, _sandbox.SandboxError)) else None
        _fail(f"{lines}{f'{chr(10)}hint: {hint}' if hint else ''}")
    return imported.__file__ or ""


def _require_kinds(kinds: list[str], module: str) -> None:
    for kind in kinds:
        if kind not in registered:
            found = ", ".join(_exports.kinds_of(registered)) or "none"
            _fail(
                f"plugin.toml states the kind {kind}, but src/{module}.py registers no such class "
                f"with @plugin; registered: {found}"
            )
    for kind in registered:
        if kind not in kinds:
            _fail(
                f"{registered[kind].__name__} is a plugin of the kind {kind}, which `kinds` of "
                "plugin.toml does not state"
            )


def _describing(descriptor: Descriptor) -> type:
    class Described:
        """The functions of an interface that belong to no resource."""

        def describe(self) -> Descriptor:
            _sandbox.go_live()
            return descriptor

    return Described


def _fail(message: str) -> NoReturn:
    """Ends the build with a message."""
    print(f"veeksha: {message}", file=sys.__stderr__)
    sys.__stderr__.flush()  # type: ignore[union-attr]
    raise SystemExit(1)
