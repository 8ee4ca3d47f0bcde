/* Decompression of one raw DEFLATE stream (RFC 1951) between two buffers: no memory is allocated, no library is used,
 * so a signal handler may call it. Codes are read bit by bit, which is slow and short; a block holds 64 KB at most. */

#include <stdint.h>

enum { MAX_BITS = 15, LITERALS = 288, DISTANCES = 32 };

struct huffman {
    uint16_t count[MAX_BITS + 1]; /* how many codes have each length */
    uint16_t symbol[LITERALS];    /* symbols in the order of their codes */
};

struct inflater {
    struct huffman literals, distances;
    uint8_t lengths[LITERALS + DISTANCES];
    const uint8_t *in, *in_end;
    uint8_t *out, *out_start, *out_end;
    uint32_t bits; /* bits read from the input and not used yet */
    int available;
    int failed;
};

static uint32_t take_bits(struct inflater *z, int count) {
    while (z->available < count) {
        if (z->in == z->in_end) {
            z->failed = 1;
            return 0;
        }
        z->bits |= (uint32_t)*z->in++ << z->available;
        z->available += 8;
    }
    uint32_t value = z->bits & ((1u << count) - 1);
    z->bits >>= count;
    z->available -= count;
    return value;
}

/* Symbols of the same length have consecutive codes, and longer codes follow shorter ones (RFC 1951, 3.2.2). */
static void build(struct huffman *code, const uint8_t *lengths, int count) {
    uint16_t place[MAX_BITS + 1];
    for (int bits = 0; bits <= MAX_BITS; bits++) code->count[bits] = 0;
    for (int i = 0; i < count; i++) code->count[lengths[i]]++;
    code->count[0] = 0;
    place[0] = 0;
    for (int bits = 0; bits < MAX_BITS; bits++) place[bits + 1] = place[bits] + code->count[bits];
    for (int i = 0; i < count; i++)
        if (lengths[i]) code->symbol[place[lengths[i]]++] = i;
}

static int decode(struct inflater *z, const struct huffman *code) {
    int value = 0, first = 0, index = 0;
    for (int bits = 1; bits <= MAX_BITS; bits++) {
        value |= take_bits(z, 1);
        int count = code->count[bits];
        if (value - first < count) return code->symbol[index + value - first];
        index += count;
        first = (first + count) << 1;
        value <<= 1;
    }
    z->failed = 1;
    return 0;
}

static void put(struct inflater *z, uint8_t byte) {
    if (z->out == z->out_end)
        z->failed = 1;
    else
        *z->out++ = byte;
}

static void copy_stored(struct inflater *z) {
    z->bits = 0;
    z->available = 0;
    uint32_t length = take_bits(z, 16);
    uint32_t complement = take_bits(z, 16);
    if ((length ^ complement) != 0xFFFF) z->failed = 1;
    while (length-- && !z->failed) put(z, take_bits(z, 8));
}

static void read_fixed_codes(struct inflater *z) {
    for (int i = 0; i < LITERALS; i++) z->lengths[i] = i < 144 ? 8 : i < 256 ? 9 : i < 280 ? 7 : 8;
    build(&z->literals, z->lengths, LITERALS);
    for (int i = 0; i < DISTANCES; i++) z->lengths[i] = 5;
    build(&z->distances, z->lengths, DISTANCES);
}

static void read_dynamic_codes(struct inflater *z) {
    static const uint8_t order[19] = {16, 17, 18, 0, 8, 7, 9, 6, 10, 5, 11, 4, 12, 3, 13, 2, 14, 1, 15};
    int literals = take_bits(z, 5) + 257, distances = take_bits(z, 5) + 1, codes = take_bits(z, 4) + 4;
    int total = literals + distances, filled = 0;
    if (literals > LITERALS) z->failed = 1;
    for (int i = 0; i < 19; i++) z->lengths[order[i]] = i < codes ? take_bits(z, 3) : 0;
    build(&z->literals, z->lengths, 19);
    while (filled < total && !z->failed) {
        int symbol = decode(z, &z->literals), repeat = 1, value = symbol;
        if (symbol == 16) {
            value = filled ? z->lengths[filled - 1] : 0;
            repeat = 3 + take_bits(z, 2);
        } else if (symbol > 16) {
            value = 0;
            repeat = symbol == 17 ? 3 + take_bits(z, 3) : 11 + take_bits(z, 7);
        }
        while (repeat-- && filled < total) z->lengths[filled++] = value;
    }
    if (z->failed) return;
    build(&z->distances, z->lengths + literals, distances);
    build(&z->literals, z->lengths, literals);
}

static void copy_match(struct inflater *z, int symbol) {
    static const uint16_t length_base[29] = {3,  4,  5,  6,  7,  8,  9,  10, 11,  13,  15,  17,  19,  23, 27,
                                             31, 35, 43, 51, 59, 67, 83, 99, 115, 131, 163, 195, 227, 258};
    static const uint8_t length_extra[29] = {0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2,
                                             2, 3, 3, 3, 3, 4, 4, 4, 4, 5, 5, 5, 5, 0};
    if (symbol >= 29) {
        z->failed = 1;
        return;
    }
    int length = length_base[symbol] + take_bits(z, length_extra[symbol]);
    int code = decode(z, &z->distances);
    if (code >= 30) {
        z->failed = 1;
        return;
    }
    int extra = code < 2 ? 0 : code / 2 - 1;
    uint32_t base = code < 2 ? code : (2 + (code & 1)) << extra;
    uint32_t distance = 1 + base + take_bits(z, extra);
    if (distance > (uint32_t)(z->out - z->out_start)) z->failed = 1;
    while (length-- && !z->failed) put(z, *(z->out - distance));
}

/* Returns the number of bytes written, or -1 if the stream is broken or does not fit. */
static long inflate(struct inflater *z, const uint8_t *in, long in_size, uint8_t *out, long out_size) {
    int last = 0;
    z->in = in;
    z->in_end = in + in_size;
    z->out = z->out_start = out;
    z->out_end = out + out_size;
    z->bits = 0;
    z->available = 0;
    z->failed = 0;
    while (!last && !z->failed) {
        last = take_bits(z, 1);
        uint32_t kind = take_bits(z, 2);
        if (kind == 0) {
            copy_stored(z);
            continue;
        }
        if (kind == 1)
            read_fixed_codes(z);
        else if (kind == 2)
            read_dynamic_codes(z);
        else
            z->failed = 1;
        while (!z->failed) {
            int symbol = decode(z, &z->literals);
            if (z->failed || symbol == 256) break;
            if (symbol < 256)
                put(z, symbol);
            else
                copy_match(z, symbol - 257);
        }
    }
    return z->failed ? -1 : z->out - out;
}
