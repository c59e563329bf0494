"""The counter-based random numbers of l3c, once more in numpy.

Initial weights and the order of the rows follow from them (layers/tensor/philox.h, layers/l1/init.h),
so that a peer starts where l3c starts and reads the same rows. The last bit of a normal number may
differ where the library's logarithm or cosine does.
"""

import numpy as np


def philox_blocks(seed, stream, count):
    """The 4 words at counters (0 … count-1, stream) under `seed`, as [count, 4]."""
    mask = np.uint64(0xFFFFFFFF)
    block = np.arange(count, dtype=np.uint64)
    c = [
        block & mask,
        block >> np.uint64(32),
        np.full(count, stream & 0xFFFFFFFF, np.uint64),
        np.full(count, stream >> 32, np.uint64),
    ]
    k = [seed & 0xFFFFFFFF, seed >> 32]
    for _ in range(10):
        p0 = np.uint64(0xD2511F53) * c[0]
        p1 = np.uint64(0xCD9E8D57) * c[2]
        c = [
            (p1 >> np.uint64(32)) ^ c[1] ^ np.uint64(k[0]),
            p1 & mask,
            (p0 >> np.uint64(32)) ^ c[3] ^ np.uint64(k[1]),
            p0 & mask,
        ]
        k = [(k[0] + 0x9E3779B9) & 0xFFFFFFFF, (k[1] + 0xBB67AE85) & 0xFFFFFFFF]
    return np.stack(c, axis=1)


def normals(seed, stream, count):
    """Box-Muller on pairs of words; logarithm, sine and cosine are the library's."""
    words = philox_blocks(seed, stream, (count + 3) // 4).reshape(-1, 2).astype(np.float64)
    radius = np.sqrt(-2 * np.log((words[:, 0] + 1) * 2.0**-32))
    angle = 2 * np.pi * words[:, 1] * 2.0**-32
    pairs = np.stack([radius * np.cos(angle), radius * np.sin(angle)], axis=1)
    return pairs.reshape(-1)[:count].astype(np.float32)


def shuffled(count, seed, epoch):
    """Fisher and Yates, drawing below n from 64-bit words."""
    words = philox_blocks(seed, (1 << 63) | epoch, count).reshape(-1, 2)
    draws = iter([int(low) | int(high) << 32 for low, high in words])
    order = list(range(count))
    for n in range(count, 1, -1):
        while True:
            word = next(draws)
            if word >= (1 << 64) % n:
                break
        j = word % n
        order[n - 1], order[j] = order[j], order[n - 1]
    return np.array(order)


def state_key(name):
    """FNV-1a, 64 bits."""
    h = 0xCBF29CE484222325
    for byte in name.encode():
        h = (h ^ byte) * 0x100000001B3 % (1 << 64)
    return h
