// Events as a few bytes each: what repeats is not written again. Encoder (hot path of the tracer) and decoder, side by side.
//
// An event is encoded against its context: the last event of the same function, file and origin in this chunk, of which
// `context_count` are remembered, each in a slot chosen by a hash. Per event:
//
//   tag      1 byte   0x80 + slot, + 0x40 if there is a `rare` byte. Never 0: it is stored last, and 0 ends the records
//   shape    1 byte   how long the following are: two bits each for gap, duration, offset and bytes
//   offset   0, 0, 4 or 6 bytes   minus the context's last one, zigzag. Not there when it is the last plus the context's
//                     stride (0), or begins where the last call ended (1). A stride is taken up when it was seen twice
//   bytes    0, 2, 4 or 8 bytes   minus the last, zigzag (for a failed call: of minus errno). 0: as the last time
//   gap      1, 2, 3 or 8 bytes   start minus the end of the record before, in time units, zigzag
//   duration 1, 2, 3 or 8 bytes   time units
//   [rare]   1 byte   which of the following are there (Rare)
//   [define] 2 + 1 + 4 bytes   function, origin, file: the slot gets a new context, which the fields above are relative to
//   [wide]   8 bytes  the offset, where 6 bytes do not hold it
//   [order]  2 varints   sequence minus that of the record before, zigzag; sequence minus parent, or 0 without a parent
//   [site]   varint   call site, where it is not the context's last one
//   [less]   varint   how many bytes less than asked for were moved, although there was more to move
//
// Fields are stored as whole words, of which the next field overwrites what is too much. What is rare is written by a
// function of its own.
//
// Time is kept in units of 2^shift ticks, cut off from absolute values so that errors do not add up. The codec's state
// begins anew in every chunk (with its StreamRecord): damage to one does not reach the next.
// What does not live here: chunks, meta records (ring/, reader.cpp).
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>

namespace ioweir::format {

/// An event as recorded. Times in units of 2^shift ticks.
struct EventFields {
    std::uint16_t function = 0;
    std::uint8_t origin = 0;
    bool failed = false;
    std::uint32_t file = 0;
    std::uint32_t sequence = 0;
    std::uint32_t parent = 0;  ///< sequence of the enclosing call; 0: none
    std::uint64_t start = 0;
    std::uint64_t end = 0;
    std::int64_t offset = 0;
    std::int64_t bytes = 0;
    std::uint32_t site = 0;  ///< who called, named by a SiteRecord; 0: call sites are not recorded
    /// A short call: bytes that it was asked for and did not move. 0 of one that moved all, read to the end of the file, or failed.
    std::uint64_t missing = 0;

    friend bool operator==(const EventFields&, const EventFields&) = default;
};

namespace codec {

inline constexpr std::uint32_t context_count = 64;
inline constexpr std::uint8_t first_tag = 0x80;  ///< tags of events: 0x80 .. 0xff
inline constexpr std::uint8_t rare_tag = 0x40;   ///< in a tag: there is a `rare` byte
/// No event is longer, in bytes; with the rest of the last word stored.
inline constexpr std::size_t longest_event = 2 + 4 * 8 + 1 + 7 + 8 + 2 * 10 + 10 + 10 + 8;

struct Rare {
    static constexpr std::uint8_t define = 1;
    static constexpr std::uint8_t failed = 2;
    static constexpr std::uint8_t wide = 4;
    static constexpr std::uint8_t order = 8;
    static constexpr std::uint8_t site = 16;
    static constexpr std::uint8_t less = 32;
    static constexpr std::uint8_t known = 63;  ///< all of them
};

/// The codes of `shape`, by field.
namespace offset_code {
inline constexpr std::uint32_t stride = 0;
inline constexpr std::uint32_t sequential = 1;
inline constexpr std::uint32_t four_bytes = 2;
inline constexpr std::uint32_t six_bytes = 3;
}  // namespace offset_code
inline constexpr std::uint8_t time_bytes[4] = {1, 2, 3, 8};
inline constexpr std::uint8_t offset_bytes[4] = {0, 0, 4, 6};
inline constexpr std::uint8_t size_bytes[4] = {0, 2, 4, 8};
inline constexpr unsigned duration_shift = 2;
inline constexpr unsigned offset_shift = 4;
inline constexpr unsigned size_shift = 6;

inline constexpr unsigned short_time_bits = 24;  ///< a time that is longer takes eight bytes
static_assert(time_bytes[0] == 1 && time_bytes[1] == 2 && time_bytes[2] == 3 && time_bytes[3] == 8);

/// The code of a time of three bytes at most. Added up, not compared: times cross the limits in a way that no processor
/// foresees, and compilers turn comparisons into branches.
inline std::uint32_t short_time_code(std::uint64_t value) {
    constexpr std::uint32_t above = 1U << short_time_bits;
    const auto low = static_cast<std::uint32_t>(value);
    return ((low + (above - 0x100)) >> short_time_bits) + ((low + (above - 0x1'0000)) >> short_time_bits);
}
inline std::uint32_t time_code(std::uint64_t value) {
    return value >> short_time_bits == 0 ? short_time_code(value) : 3;
}

struct Order {
    std::int32_t sequence_step = 0;  ///< sequence minus that of the record before
    std::uint32_t parent_step = 0;   ///< sequence minus parent; 0: no parent

    friend bool operator==(const Order& a, const Order& b) {
        return std::bit_cast<std::uint64_t>(a) == std::bit_cast<std::uint64_t>(b);
    }
};

/// One cache line.
struct alignas(64) Context {
    std::uint64_t key = 0;  ///< function, origin and file; 0: the slot is free
    std::int64_t offset = 0;
    std::int64_t stride = 0;    ///< expected distance of offsets
    std::int64_t distance = 0;  ///< the last one seen
    std::int64_t bytes = 0;
    Order order;
    std::uint32_t site = 0;
};

/// The record before.
struct Previous {
    std::uint64_t end = 0;
    std::uint32_t sequence = 0;
};
struct Contexts {
    Context slots[context_count];
};

/// Encoder's and decoder's memory. A StreamRecord begins it anew, with the time it states.
struct State {
    Previous previous;
    Contexts contexts;

    void reset(std::uint64_t time) {
        previous = {time, 0};
        contexts = {};
    }
};

inline std::uint64_t key_of(std::uint16_t function, std::uint8_t origin, std::uint32_t file) {
    return (static_cast<std::uint64_t>(file) << 24) | (static_cast<std::uint64_t>(origin) << 16) | function;
}
/// A call and those that it makes take turns, and must never have the same slot: they differ in whether the application made them.
inline std::uint32_t slot_of(std::uint64_t key) {
    const std::uint32_t inner = (key >> 16 & 0xffU) != 0 ? 1 : 0;
    return static_cast<std::uint32_t>((key * 0x9E37'79B9'7F4A'7C15ULL) >> 59) << 1 | inner;
}
static_assert(context_count == 64, "slot_of takes five bits and one");

inline std::uint64_t zigzag(std::int64_t value) {
    return (static_cast<std::uint64_t>(value) << 1) ^ static_cast<std::uint64_t>(value >> 63);
}
inline std::int64_t unzigzag(std::uint64_t value) {
    return static_cast<std::int64_t>(value >> 1) ^ -static_cast<std::int64_t>(value & 1);
}
/// Wraps around like the machine does: the decoder's addition undoes it for any two values.
inline std::int64_t difference(std::int64_t a, std::int64_t b) {
    return static_cast<std::int64_t>(static_cast<std::uint64_t>(a) - static_cast<std::uint64_t>(b));
}
inline std::int64_t sum(std::int64_t a, std::int64_t b) {
    return static_cast<std::int64_t>(static_cast<std::uint64_t>(a) + static_cast<std::uint64_t>(b));
}

/// What an event's offset and size teach for the next one.
inline void learn(Context& context, std::int64_t distance, std::int64_t offset, std::int64_t bytes) {
    context.stride = distance == context.distance ? distance : context.stride;
    context.distance = distance;
    context.offset = offset;
    context.bytes = bytes;
}

inline std::byte* put_varint(std::byte* out, std::uint64_t value) {
    while (value >= 0x80) [[unlikely]] {
        *out++ = static_cast<std::byte>(value | 0x80);
        value >>= 7;
    }
    *out++ = static_cast<std::byte>(value);
    return out;
}

/// Stores a whole word; the caller goes on behind the part of it that counts. The rest is zero, as free space has to be
/// (of an offset it may not be: there two more fields follow in any case).
inline void put_word(std::byte* out, std::uint64_t value) { std::memcpy(out, &value, sizeof value); }

/// A distance that is neither the stride nor what leads to the last call's end. Returns the end; of one that six bytes
/// do not hold they count for nothing.
[[gnu::always_inline]] inline std::byte* put_distance(std::uint64_t value, std::byte* at, std::uint32_t& shape) {
    const std::uint32_t longer = value >> 32 != 0 ? 1 : 0;
    shape = (offset_code::four_bytes + longer) << offset_shift;
    put_word(at, value);
    return at + 4 + 2 * longer;
}
inline bool is_wide(std::uint64_t distance) { return distance >> 48 != 0; }
/// The same of a distance that is not zigzag()ed: most events need no more of it.
inline std::uint64_t bits_if_wide(std::int64_t distance) {
    return (static_cast<std::uint64_t>(distance) + (std::uint64_t{1} << 47)) >> 48;
}

/// A size that is not the last one.
[[gnu::always_inline]] inline std::byte* put_size(Context& context, std::int64_t bytes, std::byte* at,
                                                  std::uint32_t& shape) {
    const std::uint64_t value = zigzag(difference(bytes, context.bytes));
    const std::uint32_t code = 1U + (value >> 16 != 0 ? 1U : 0U) + (value >> 32 != 0 ? 1U : 0U);
    shape |= code << size_shift;
    put_word(at, value);
    return at + (std::size_t{1} << code);
}

inline void put_tag(std::byte* out, std::uint32_t tag, std::uint32_t shape) {
    out[1] = static_cast<std::byte>(shape);
    __atomic_store_n(reinterpret_cast<std::uint8_t*>(out), static_cast<std::uint8_t>(tag), __ATOMIC_RELEASE);
}

/// An event without a call site (and none before it in this chunk) and with nothing rare about it: written as encode()
/// does. Null, and nothing has happened, when there is something rare: then encode() has to do it. Calls nothing, and asks
/// first what may be rare, so that few registers are needed.
[[gnu::always_inline]] inline std::byte* encode_common(Previous& previous, Contexts& contexts, std::uint64_t key,
                                                       std::uint64_t start, std::uint64_t end, std::int64_t offset,
                                                       std::int64_t bytes, std::uint32_t sequence,
                                                       std::uint32_t parent_step, std::byte* out) {
    const std::uint32_t slot = slot_of(key);
    Context& context = contexts.slots[slot];
    const Order order{static_cast<std::int32_t>(sequence - previous.sequence), parent_step};
    const std::uint64_t gap = zigzag(static_cast<std::int64_t>(start - previous.end));
    const std::uint64_t duration = end - start;
    const std::int64_t distance = difference(offset, context.offset);
    if (context.key != key || context.order != order ||
        (bits_if_wide(distance) | (gap | duration) >> short_time_bits) != 0) [[unlikely]]
        return nullptr;
    previous.end = end;
    previous.sequence = sequence;
    const std::uint32_t gap_code = short_time_code(gap);
    const std::uint32_t duration_code = short_time_code(duration);
    const std::uint64_t times = gap | duration << (8 * gap_code + 8);

    std::uint32_t shape = 0;
    std::byte* at = out + 2;
    if (distance != context.stride) {
        if (distance == context.bytes)
            shape = offset_code::sequential << offset_shift;
        else
            at = put_distance(zigzag(distance), at, shape);
        if (distance == context.distance) context.stride = distance;
    }
    context.distance = distance;
    context.offset = offset;
    if (bytes != context.bytes) {
        at = put_size(context, bytes, at, shape);
        context.bytes = bytes;
    }
    put_word(at, times);
    put_tag(out, first_tag + slot, shape | gap_code | duration_code << duration_shift);
    return at + gap_code + duration_code + 2;
}

/// Writes whose event it is, where that is not known yet, and a distance that is wide.
[[gnu::always_inline]] inline std::byte* put_definition(const EventFields& event, std::uint8_t parts, std::uint64_t far,
                                                        std::byte* at) {
    if ((parts & Rare::define) != 0) {
        std::memcpy(at, &event.function, 2);
        at[2] = static_cast<std::byte>(event.origin);
        std::memcpy(at + 3, &event.file, 4);
        at += 7;
    }
    if ((parts & Rare::wide) != 0) {
        put_word(at, far);
        at += 8;
    }
    return at;
}

/// Writes one event at `out`, where longest_event bytes must be free (and zero); its tag last. Returns its end.
inline std::byte* encode(Previous& previous, Contexts& contexts, const EventFields& event, std::byte* out) {
    const std::uint64_t key = key_of(event.function, event.origin, event.file);
    const std::uint32_t slot = slot_of(key);
    Context& context = contexts.slots[slot];
    std::uint8_t parts = event.failed ? Rare::failed : 0;
    if (context.key != key) {
        parts |= Rare::define;
        context = Context{};
        context.key = key;
    }
    std::uint32_t shape = 0;
    std::byte* at = out + 2;
    const std::int64_t distance = difference(event.offset, context.offset);
    const std::uint64_t far = zigzag(distance);
    if (distance != context.stride) {
        if (distance == context.bytes) {
            shape = offset_code::sequential << offset_shift;
        } else {
            at = put_distance(far, at, shape);
            if (is_wide(far)) parts |= Rare::wide;
        }
    }
    if (event.bytes != context.bytes) at = put_size(context, event.bytes, at, shape);
    learn(context, distance, event.offset, event.bytes);
    const std::uint64_t gap = zigzag(static_cast<std::int64_t>(event.start - previous.end));
    const std::uint64_t duration = event.end - event.start;
    shape |= time_code(gap) | time_code(duration) << duration_shift;
    put_word(at, gap);
    at += time_bytes[time_code(gap)];
    put_word(at, duration);
    at += time_bytes[time_code(duration)];
    std::byte* const rare = at++;
    at = put_definition(event, parts, far, at);
    const Order order{static_cast<std::int32_t>(event.sequence - previous.sequence),
                      event.parent != 0 ? event.sequence - event.parent : 0};
    if (order != context.order) {
        parts |= Rare::order;
        at = put_varint(at, zigzag(order.sequence_step));
        at = put_varint(at, order.parent_step);
        context.order = order;
    }
    if (event.site != context.site) {
        parts |= Rare::site;
        at = put_varint(at, event.site);
        context.site = event.site;
    }
    if (event.missing != 0) {
        parts |= Rare::less;
        at = put_varint(at, event.missing);
    }
    *rare = static_cast<std::byte>(parts);
    if (parts == 0) at = rare;
    previous.end = event.end;
    previous.sequence = event.sequence;
    put_tag(out, first_tag + slot + (parts != 0 ? rare_tag : 0U), shape);
    return at;
}
inline std::byte* encode(State& state, const EventFields& event, std::byte* out) {
    return encode(state.previous, state.contexts, event, out);
}

/// Reads bytes within bounds; once they are exceeded, `ok` stays false.
class ByteReader {
public:
    ByteReader(const std::byte* begin, const std::byte* end) : at_(begin), end_(end) {}
    [[nodiscard]] bool ok() const { return ok_; }
    [[nodiscard]] const std::byte* at() const { return at_; }
    std::uint8_t byte() {
        if (at_ == end_) {
            ok_ = false;
            return 0;
        }
        return static_cast<std::uint8_t>(*at_++);
    }
    /// `count` bytes (0 .. 8), low byte first.
    std::uint64_t word(std::size_t count) {
        std::uint64_t value = 0;
        const auto left = static_cast<std::size_t>(end_ - at_);
        if (left >= sizeof value) [[likely]] {
            std::memcpy(&value, at_, sizeof value);
            if (count < sizeof value) value &= (std::uint64_t{1} << (8 * count)) - 1;
        } else if (count <= left) {
            for (std::size_t i = 0; i < count; ++i) value |= static_cast<std::uint64_t>(at_[i]) << (8 * i);
        } else {
            ok_ = false;
            return 0;
        }
        at_ += count;
        return value;
    }
    std::uint64_t varint() {
        std::uint64_t value = 0;
        for (unsigned shift = 0; shift < 64; shift += 7) {
            const std::uint8_t next = byte();
            value |= static_cast<std::uint64_t>(next & 0x7fU) << shift;
            if (next < 0x80) return value;
        }
        ok_ = false;  // longer than any value
        return 0;
    }

private:
    const std::byte* at_;
    const std::byte* end_;
    bool ok_ = true;
};

/// Reads the event at `in`, whose first byte is an event's tag. Returns its end, or null when these bytes are no event.
inline const std::byte* decode(State& state, EventFields& event, const std::byte* in, const std::byte* end) {
    ByteReader reader(in, end);
    const std::uint8_t tag = reader.byte();
    const std::uint32_t slot = tag % context_count;
    const std::uint8_t shape = reader.byte();
    if (!reader.ok() || tag < first_tag) return nullptr;
    const std::uint32_t offset_kind = shape >> offset_shift & 3U;
    std::uint64_t offset = reader.word(offset_bytes[offset_kind]);
    const std::uint64_t bytes = reader.word(size_bytes[shape >> size_shift & 3U]);
    const std::uint64_t gap = reader.word(time_bytes[shape & 3U]);
    const std::uint64_t duration = reader.word(time_bytes[shape >> duration_shift & 3U]);

    Context& context = state.contexts.slots[slot];
    event.failed = false;
    event.missing = 0;
    if ((tag & rare_tag) != 0) {
        const std::uint8_t parts = reader.byte();
        if ((parts & ~Rare::known) != 0) return nullptr;
        event.failed = (parts & Rare::failed) != 0;
        if ((parts & Rare::define) != 0) {
            const auto function = static_cast<std::uint16_t>(reader.word(2));
            const std::uint8_t origin = reader.byte();
            const auto file = static_cast<std::uint32_t>(reader.word(4));
            context = Context{};
            context.key = key_of(function, origin, file);
            if (slot_of(context.key) != slot) return nullptr;
        }
        if ((parts & Rare::wide) != 0) offset = reader.word(8);
        if ((parts & Rare::order) != 0) {
            context.order.sequence_step = static_cast<std::int32_t>(unzigzag(reader.varint()));
            context.order.parent_step = static_cast<std::uint32_t>(reader.varint());
        }
        if ((parts & Rare::site) != 0) context.site = static_cast<std::uint32_t>(reader.varint());
        if ((parts & Rare::less) != 0) event.missing = reader.varint();
    }
    if (!reader.ok() || context.key == 0) return nullptr;

    event.function = static_cast<std::uint16_t>(context.key & 0xffffU);
    event.origin = static_cast<std::uint8_t>((context.key >> 16) & 0xffU);
    event.file = static_cast<std::uint32_t>(context.key >> 24);
    event.start = state.previous.end + static_cast<std::uint64_t>(unzigzag(gap));
    event.end = event.start + duration;
    const std::int64_t distance = offset_kind == offset_code::stride       ? context.stride
                                  : offset_kind == offset_code::sequential ? context.bytes
                                                                           : unzigzag(offset);
    event.offset = sum(context.offset, distance);
    event.bytes = sum(context.bytes, unzigzag(bytes));
    event.sequence = state.previous.sequence + static_cast<std::uint32_t>(context.order.sequence_step);
    event.parent = context.order.parent_step != 0 ? event.sequence - context.order.parent_step : 0;
    event.site = context.site;
    learn(context, distance, event.offset, event.bytes);
    state.previous.end = event.end;
    state.previous.sequence = event.sequence;
    return reader.at();
}

}  // namespace codec
}  // namespace ioweir::format
