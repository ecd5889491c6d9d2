"""Spells words as phonemes with the network of g2p-en 2.1.0: one GRU reads the letters, another one writes the sounds.

pip download --no-deps g2p-en==2.1.0 && unzip g2p_en-2.1.0-py3-none-any.whl g2p_en/checkpoint20.npz
python examples/g2p.py g2p_en/checkpoint20.npz activationist
"""

import sys

import fastlayers as fl

VOWELS, OTHERS = "AA AE AH AO AW AY EH ER EY IH IY OW OY UH UW", "B CH D DH F G HH JH K L M N NG P R S SH T TH UW V W Y Z ZH"
SOUNDS = sorted([vowel + stress for vowel in VOWELS.split() for stress in "012"] + OTHERS.split())
LETTERS, PHONEMES = ["<pad>", "<unk>", "</s>", *"abcdefghijklmnopqrstuvwxyz"], ["<pad>", "<unk>", "<s>", "</s>", *SOUNDS]


class G2p:
    def __init__(self, path):
        w = fl.load_weights(path)
        self.encoder, self.decoder, self.output = fl.GRU(256, 256), fl.GRUCell(256, 256), fl.Linear(256, 74)
        for layer, side, end in ((self.encoder, "enc", "_l0"), (self.decoder, "dec", "")):
            names = [(f"{long}_{part}{end}", f"{side}_{long[0]}_{part}") for long in ("weight", "bias") for part in ("ih", "hh")]
            layer.load_state_dict({ours: w[theirs] for ours, theirs in names})
        self.output.load_state_dict({"weight": w["fc_w"], "bias": w["fc_b"]})
        self.letters, self.sounds = w["enc_emb"], w["dec_emb"]

    def step(self, tokens, h):
        h = self.decoder(self.sounds[tokens], h)
        return fl.functional.log_softmax(self.output(h)), h

    def __call__(self, word):
        ids = [LETTERS.index(letter if letter in LETTERS else "<unk>") for letter in [*word.lower(), "</s>"]]
        _, h = self.encoder(self.letters[ids][:, None])
        found = fl.functional.greedy_search(self.step, h[0], start=2, end=3, max_length=20)
        return [PHONEMES[i] for i in found.tokens[0, : found.lengths[0]]]


if __name__ == "__main__":
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    model = G2p(sys.argv[1])
    print("\n".join(" ".join(model(word)) for word in sys.argv[2:]))
