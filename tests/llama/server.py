#!/usr/bin/env python3
"""A real llama.cpp HTTP server over a model with random weights, for end-to-end tests.

usage: server.py FOLDER PORT [SLOTS] [CONTEXT]

Makes FOLDER/tokenizer.json and FOLDER/tiny.gguf when they are missing (a byte-level BPE tokenizer trained on the standard
library's own sources, two layers of random numbers), then serves them on 127.0.0.1. Port 0 is not supported by the server.
"""
import glob
import json
import os
import signal
import sys
import time

SPECIAL = ["<|bos|>", "<|eos|>", "<|pad|>", "<|im_start|>", "<|im_end|>"]
VOCABULARY, HIDDEN, LAYERS, HEADS, KV_HEADS, FEED_FORWARD, CONTEXT = 4096, 128, 2, 4, 2, 256, 8192
TEMPLATE = (
    "{% for m in messages %}<|im_start|>{{ m['role'] }}\n{{ m['content'] }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)


def make_tokenizer(path):
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=VOCABULARY,
        special_tokens=SPECIAL,
        show_progress=False,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
    )
    sources = sorted(glob.glob(os.path.join(os.path.dirname(os.__file__), "*.py")))[:200]
    tokenizer.train(sources, trainer)
    tokenizer.save(path)


def make_model(tokenizer_path, path):
    import gguf
    import numpy

    tokenizer = json.load(open(tokenizer_path))
    vocabulary = tokenizer["model"]["vocab"]
    size = max(vocabulary.values()) + 1
    tokens = [f"[PAD{i}]" for i in range(size)]
    kinds = [gguf.TokenType.UNUSED] * size
    for text, number in vocabulary.items():
        tokens[number], kinds[number] = text, gguf.TokenType.NORMAL
    for added in tokenizer["added_tokens"]:
        tokens[added["id"]], kinds[added["id"]] = added["content"], gguf.TokenType.CONTROL
    merges = [m if isinstance(m, str) else " ".join(m) for m in tokenizer["model"]["merges"]]

    writer = gguf.GGUFWriter(path, "llama")
    writer.add_name("tiny-random")
    writer.add_context_length(CONTEXT)
    writer.add_embedding_length(HIDDEN)
    writer.add_block_count(LAYERS)
    writer.add_feed_forward_length(FEED_FORWARD)
    writer.add_head_count(HEADS)
    writer.add_head_count_kv(KV_HEADS)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_rope_dimension_count(HIDDEN // HEADS)
    writer.add_rope_freq_base(10000.0)
    writer.add_vocab_size(size)
    writer.add_file_type(gguf.LlamaFileType.MOSTLY_F16)
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("gpt-2")
    writer.add_token_list(tokens)
    writer.add_token_types(kinds)
    writer.add_token_merges(merges)
    writer.add_bos_token_id(vocabulary["<|bos|>"])
    writer.add_eos_token_id(vocabulary["<|im_end|>"])
    writer.add_pad_token_id(vocabulary["<|pad|>"])
    writer.add_add_bos_token(False)
    writer.add_chat_template(TEMPLATE)

    random = numpy.random.default_rng(0)
    head = HIDDEN // HEADS

    def matrix(*shape):
        return (random.standard_normal(shape, dtype=numpy.float32) * 0.02).astype(numpy.float16)

    ones = numpy.ones(HIDDEN, dtype=numpy.float32)
    writer.add_tensor("token_embd.weight", matrix(size, HIDDEN))
    writer.add_tensor("output_norm.weight", ones)
    writer.add_tensor("output.weight", matrix(size, HIDDEN))
    for layer in range(LAYERS):
        name = f"blk.{layer}."
        writer.add_tensor(name + "attn_norm.weight", ones)
        writer.add_tensor(name + "ffn_norm.weight", ones)
        writer.add_tensor(name + "attn_q.weight", matrix(HEADS * head, HIDDEN))
        writer.add_tensor(name + "attn_k.weight", matrix(KV_HEADS * head, HIDDEN))
        writer.add_tensor(name + "attn_v.weight", matrix(KV_HEADS * head, HIDDEN))
        writer.add_tensor(name + "attn_output.weight", matrix(HIDDEN, HEADS * head))
        writer.add_tensor(name + "ffn_gate.weight", matrix(FEED_FORWARD, HIDDEN))
        writer.add_tensor(name + "ffn_up.weight", matrix(FEED_FORWARD, HIDDEN))
        writer.add_tensor(name + "ffn_down.weight", matrix(HIDDEN, FEED_FORWARD))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def serve(model, port, slots, context):
    import xllamacpp

    params = xllamacpp.CommonParams()
    params.model.path = model
    params.port = port
    params.hostnames = ["127.0.0.1"]
    params.n_parallel = slots
    params.n_ctx = context
    params.cpuparams.n_threads = 1
    params.cpuparams_batch.n_threads = 1
    params.n_threads_http = 64
    params.endpoint_metrics = True
    params.endpoint_slots = True
    params.endpoint_props = True
    params.cont_batching = True
    params.use_jinja = True
    params.offline = True
    params.warmup = False
    server = xllamacpp.Server(params)
    print("listening", server.listening_address, flush=True)
    signal.signal(signal.SIGTERM, lambda *_: os._exit(0))
    # A test that dies takes its server with it.
    parent = os.getppid()
    while os.getppid() == parent:
        time.sleep(0.2)


def main():
    folder, port = sys.argv[1], int(sys.argv[2])
    slots = int(sys.argv[3]) if len(sys.argv) > 3 else 8
    context = int(sys.argv[4]) if len(sys.argv) > 4 else 32768
    os.makedirs(folder, exist_ok=True)
    tokenizer, model = os.path.join(folder, "tokenizer.json"), os.path.join(folder, "tiny.gguf")
    if not os.path.exists(tokenizer):
        make_tokenizer(tokenizer)
    with open(os.path.join(folder, "tokenizer_config.json"), "w") as file:
        json.dump({"chat_template": TEMPLATE, "eos_token": "<|im_end|>"}, file)
    if not os.path.exists(model):
        make_model(tokenizer, model + ".part")
        os.rename(model + ".part", model)
    serve(model, port, slots, context)


main()
