"""The exception that all functions raise for errors of the program."""


class Error(Exception):
    """An error of a command.

    str(error) is the text that the command line prints after "tpsim: error: ". exit_code is the
    command's exit code.
    """

    kind: str  # "bad_input", "does_not_fit", "missing", "interrupted", "terminated" or "bug"
    exit_code: int
    message: str
    where: str  # the option, or file and line; may be empty
    hint: str  # next step, or the nearest valid choice; may be empty

    def __init__(
        self, text: str, kind: str, exit_code: int, message: str, where: str, hint: str
    ) -> None:
        super().__init__(text, kind, exit_code, message, where, hint)
        self.kind = kind
        self.exit_code = exit_code
        self.message = message
        self.where = where
        self.hint = hint

    def __str__(self) -> str:
        return str(self.args[0])
