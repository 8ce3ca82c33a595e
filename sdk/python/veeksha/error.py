"""Errors that a plugin reports on purpose."""

from __future__ import annotations


class Error(Exception):
    """An error for the user of the plugin: `raise Error("no-plan", "the answer has no plan")`.

    Other exceptions are reported as well, with their traceback. Raise an `Error` for what the user
    can mend.
    """

    def __init__(
        self,
        code: str,
        message: str,
        hint: str | None = None,
        path: str | None = None,
    ) -> None:
        """Makes an error.

        Args:
            code: a short, constant name for programs.
            message: one line for the user.
            hint: the remedy.
            path: the location in the plugin's configuration, as a JSON pointer
                (`/channels/0/type`).
        """
        super().__init__(code, message, hint, path)
        self.code = code
        self.message = message
        self.hint = hint
        self.path = path

    def __str__(self) -> str:
        where = f" (config: {self.path or '/'})" if self.path is not None else ""
        hint = f"; {self.hint}" if self.hint else ""
        return f"{self.message}{where}{hint}"

    @staticmethod
    def config(path: str, message: str, hint: str | None = None) -> Error:
        """Returns an error about a value of the configuration: code `config`, at a JSON pointer."""
        return Error("config", message, hint, path)

    def below(self, key: str | int) -> Error:
        """Returns the same error, seen from one level up in the configuration."""
        step = str(key).replace("~", "~0").replace("/", "~1")
        return Error(self.code, self.message, self.hint, f"/{step}{self.path or ''}")
