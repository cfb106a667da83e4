"""What can go wrong, as one exception."""


class Error(Exception):
    """What the command line prints after "tpsim: error: ", as an exception.

    str(error) is that text. exit_code is what the command would have ended with.
    """

    kind: str  # "bad_input", "does_not_fit", "missing", "interrupted", "terminated" or "bug"
    exit_code: int
    message: str
    where: str  # the option, or file and line; may be empty
    hint: str  # what to do, or the nearest valid choice; may be empty

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
