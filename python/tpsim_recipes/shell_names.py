"""Names that shell scripts expand and assign, by their text, and the commands in their trace."""
import re
import shlex

NAME = r"[A-Za-z_][A-Za-z0-9_]*"
SET_BY_BASH = set("BASH BASH_SOURCE BASH_VERSION BASHPID COLUMNS EUID FUNCNAME GROUPS HOSTNAME HOSTTYPE IFS LINENO LINES MACHTYPE OLDPWD "
                  "OPTARG OPTIND OSTYPE PATH PIPESTATUS PPID PS4 PWD RANDOM REPLY SECONDS SHELL SHLVL UID EPOCHSECONDS EPOCHREALTIME "
                  "BASH_REMATCH BASH_ARGV BASH_LINENO SRANDOM TMPDIR HOME USER LANG TERM".split())


# "if [ -z "$NAME" ]; then NAME=..." and its spellings.
EMPTY = re.compile(rf"""(?:\[\[?|\btest)\s+(?:-z\s+"?\$\{{?({NAME})\}}?"?|"?\$\{{?({NAME})\}}?"?\s*==?\s*(?:""|''))\s*(?:\]\]?)?\s*"""
                   rf"""(?:;|&&|\n)\s*(?:then\b)?\s*(?:export\s+)?({NAME})=""")


# "if [ -n "$2" ]; then NAME=$2", which keeps the script's own value if $2 is empty.
FILLED = re.compile(rf"""(?:\[\[?|\btest)\s+(?:-n\s+"?|!\s+-z\s+"?)\$\{{?({NAME}|\d+)\}}?"?\s*(?:\]\]?)?\s*(?:;|&&|\n)\s*(?:then\b)?\s*"""
                    rf"""(?:export\s+)?({NAME})="?\$\{{?\1\}}?"?(?=[\s;)]|$)""")
# Text that the user replaces: "NAME=<your path>", "--save <PATH TO CHECKPOINTS>".
PLACEHOLDER = re.compile(r"""(=)<([A-Za-z][^<>\n"'$|&;`]*[^<>\n"'$|&;`\s])>|([\s\"'])<([A-Z]{2,}\b[\w ./-]*[A-Za-z/])>(?=[\s"'\\]|$)""")


def without_placeholders(text):
    """Returns the text with plain words for placeholders, which bash would take for redirections."""
    return PLACEHOLDER.sub(lambda match: (match[1] or match[3]) + re.sub(r"[^\w./-]+", "_", match[2] or match[4]), text)


def without_replaced(text):
    """Returns the text without assignments of values in whose place, if they are empty, the script puts its own default."""
    text = FILLED.sub(lambda match: f"\n{match[2]}=", text)
    replaced = {match[3] for match in EMPTY.finditer(text) if match[3] in match.groups()[:2]}
    return re.sub(rf"(?<![\w$])({NAME})=\"?\$\{{?(?:{NAME}|\d+)\}}?\"?(?=[\s;)]|$)", lambda match: f"{match[1]}=" if match[1] in replaced else match[0], text)


def expansions(texts):
    """Returns the variables that the texts expand without a default, those that they require, and those that they assign."""
    text = without_replaced("\n".join(texts))
    plain = set(re.findall(rf"\$({NAME})", text)) | set(re.findall(rf"\$\{{[#!]?({NAME})(?![A-Za-z0-9_]|:?[-=?])", text))
    for inside in re.findall(r"\(\(([^()]*(?:\([^()]*\)[^()]*)*)\)\)", text):
        plain |= set(re.findall(rf"(?<![\w$]){NAME}", re.sub(r"\$\([^()]*\)", "", inside)))
    required = set(re.findall(rf"\$\{{({NAME}):?\?", text))
    text = re.sub(r"(?m)(^|\s)#.*$|\becho .*$", "", text)  # neither comments nor usage texts assign
    assigned = set(re.findall(rf"(?:^|[\s;&|(`{{'\"]|--env[ =]|-e )({NAME})(?:\[[^\]]*\])?\+?=", text, re.MULTILINE))
    for inside in re.findall(r"\(\(.*?\)\)", text):
        assigned |= set(re.findall(rf"({NAME})\s*(?:\+\+|--|[-+*/]?=(?!=))", inside))
    for before in (r"\bfor\s+", r"\bprintf\s+-v\s+", r"\bgetopts\s+\S+\s+"):
        assigned |= set(re.findall(rf"{before}({NAME})", text))
    assigned |= set(re.findall(rf"\$\{{({NAME}):?=", text))
    for words in re.findall(r"\b(?:read|mapfile|readarray|local|declare|typeset)\b([^\n;|<&]*)", text):
        assigned |= {word.partition("=")[0] for word in words.split() if re.match(NAME, word)}
    numbers = [int(one) for one in re.findall(r"\$\{?(\d+)(?![\d]|:?[-=+])", text)]
    return plain, required, assigned, set(numbers)


def traced(run):
    """Yields the words of each traced command, with the file and line that it is in."""
    for entry in run["trace"].split("\x1e"):
        place, _, text = entry.partition("\x1f")
        if text and len(text) < 1 << 16:
            try:
                yield place, shlex.split(text.rstrip("\n").replace("$'", "'"))
            except ValueError:
                yield place, text.split()
