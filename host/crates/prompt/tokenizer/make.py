"""Makes the embedded tokenizer: byte-level BPE, trained on the prose of Python's own standard library.

    pip install tokenizers==0.22.2
    python make.py                                    # writes tokenizer.json next to this file
    UPDATE_WORDS=1 cargo test -p veeksha-prompt --lib   # finds its words again: words.txt

The text is every docstring and every comment of the standard library (PSF licence) of the Python that runs this. Only the
vocabulary and the merges learnt from it are kept; none of the text is shipped.
"""

import ast
import io
import json
import pathlib
import re
import sysconfig
import tokenize

from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

VOCABULARY = 9216
HERE = pathlib.Path(__file__).parent


def prose(source: str):
    """The docstrings and comments of a module."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)):
            if text := ast.get_docstring(node):
                yield text
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            yield token.string.lstrip("#! ")


def corpus():
    """Lines of the library that read like prose: at least four words of plain letters."""
    root = pathlib.Path(sysconfig.get_path("stdlib"))
    for path in sorted(root.rglob("*.py")):
        if {"site-packages", "test", "tests", "lib2to3", "idlelib"} & set(path.relative_to(root).parts):
            continue
        try:
            for text in prose(path.read_text("utf-8")):
                for line in text.splitlines():
                    if len(re.findall(r"\b[a-z]+\b", line)) >= 4:
                        yield line
        except (SyntaxError, UnicodeDecodeError, ValueError, tokenize.TokenError):
            continue
    from pydoc_data import topics

    for _, text in sorted(topics.topics.items()):
        yield from text.splitlines()


def main():
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=VOCABULARY,
        special_tokens=["<|endoftext|>"],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator(corpus(), trainer)
    compact = json.dumps(json.loads(tokenizer.to_str()), ensure_ascii=False, separators=(",", ":"))
    (HERE / "tokenizer.json").write_text(compact + "\n", "utf-8")
    words = [t for t in tokenizer.get_vocab() if re.fullmatch("Ġ[a-z]{3,}", t)]
    print(f"{tokenizer.get_vocab_size()} tokens, {len(words)} of them words, {len(compact)} bytes")


if __name__ == "__main__":
    main()
