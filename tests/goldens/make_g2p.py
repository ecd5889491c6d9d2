"""Writes g2p.txt: what the numpy code of g2p-en 2.1.0 itself makes of some hundred words, a line each.

Run from the root of the repository: ``python -m tests.goldens.make_g2p``. The wheel is fetched; of its class only what predicts
is run, since the constructor wants corpora.
"""

from __future__ import annotations

import ast
import random
from pathlib import Path
from typing import Any

import numpy as np

from tests.examples.wheels import wheel_file

G2P = "g2p-en==2.1.0"
# Names, everyday and rare words, made-up ones, one letter, apostrophes and hyphens (letters that are unknown), long ones.
TEXT = """
a i o x zz aa ox the you me it go cat dog house mouse hello world yes no never always activationist grapheme phoneme tokenizer
transformer softmax convolution recurrent network perceptron python cython numpy vectorize quantize embedding sigmoid tanh
relu lstm gru attention bahdanau kubernetes docker linux ubuntu debian fedora emacs vim javascript typescript rustacean gopher
haskell lambda epsilon omicron upsilon xylophone quixotic zeitgeist schadenfreude doppelganger rendezvous hors entrepreneur
bourgeois colonel lieutenant wednesday february worcestershire leicester gloucester thames edinburgh versailles beijing
reykjavik eyjafjallajokull llanfair cwm rhythm myrrh gypsy pneumonia psychology knight gnome wrist tsunami mnemonic phlegm
sword island aisle debt doubt receipt subtle castle listen whistle salmon talk walk calm palm half calf yolk folk cough rough
through though thorough bough drought ought laughter daughter slaughter tough enough hiccough plough dough read lead tear bow
row sow wound close live bass dove desert present object record refuse minute content antidisestablishmentarianism
pneumonoultramicroscopicsilicovolcanoconiosis supercalifragilisticexpialidocious floccinaucinihilipilification
incomprehensibilities don't can't o'clock rock'n'roll mother-in-law well-being x-ray e-mail covid blockchain bitcoin crypto
selfie podcast blog vlog tweet emoji meme hashtag chatbot deepfake cyberspace netizen google youtube facebook twitter amazon
netflix spotify tesla ikea adidas nike hyundai porsche nguyen xiaoming muhammad giovanni wolfgang amadeus tchaikovsky
dostoevsky nietzsche goethe camus sartre brobdingnagian jabberwocky slithy toves gimble wabe mimsy borogoves frumious
bandersnatch vorpal snickersnack galumphing
"""


def invented(count: int) -> list[str]:
    """Words of letters at random, vowels every other one."""
    draw = random.Random(0)
    return [
        "".join(draw.choice("aeiouy" if i % 2 else "bcdfghjklmnpqrstvwxz") for i in range(draw.randint(2, 12)))
        for _ in range(count)
    ]


def main() -> None:
    source = wheel_file(G2P, "g2p_en/g2p.py").read_text(encoding="utf-8")
    variables = wheel_file(G2P, "g2p_en/checkpoint20.npz")
    (whole,) = (node for node in ast.parse(source).body if isinstance(node, ast.ClassDef))
    methods = {node.name: node for node in whole.body if isinstance(node, ast.FunctionDef)}
    # Of the constructor only the tables of letters and sounds.
    methods["__init__"].body = methods["__init__"].body[1:7]
    whole.body = [node for name, node in methods.items() if name != "__call__"]
    space: dict[str, Any] = {"np": np, "os": __import__("os"), "dirname": str(variables.parent)}
    exec(compile(ast.Module([whole], []), "g2p.py", "exec"), space)
    model = space["G2p"]()
    model.load_variables()
    words = list(dict.fromkeys([*TEXT.split(), *invented(60)]))
    lines = [f"{word} {' '.join(model.predict(word))}".rstrip() for word in words]
    Path(__file__).with_name("g2p.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
