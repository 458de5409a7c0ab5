// Events as a few bytes each: what repeats is not written again. Encoder (hot path of the tracer) and decoder, side by side.
//
// An event is encoded against its context: the last event of the same function, file and origin in this chunk, of which
// `context_count` are remembered, each in a slot chosen by a hash. Per event:
//
//   tag      1 byte   0x80 + slot. Never 0: the tag is stored last, and 0 ends the records of a chunk
//   shape    1 byte   which of the following are there (Shape)
//   [define] 2 + varint + 1   function, file, origin: the slot gets a new context (Shape::define)
//   gap      varint   start minus the end of the record before, in time units, zigzag
//   duration varint   time units
//   [offset] varint   minus the last one, zigzag. Left out when it is the last plus the context's stride, or (Shape::sequential)
//                     begins where the last call ended. A stride is taken up when it was seen twice in a row
//   [bytes]  varint   minus the last, zigzag (for a failed call: of minus errno)
//   [order]  2 varints   sequence minus that of the record before, zigzag; sequence minus parent, or 0 without a parent
//   [site]   varint   call site, where it is not the context's last one
//
// Time is kept in units of 2^shift ticks, cut off from absolute values so that errors do not add up. The codec's state
// begins anew in every chunk (with its StreamRecord): damage to one does not reach the next.
// What does not live here: chunks, meta records (ring/, reader.cpp).
#pragma once

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

    friend bool operator==(const EventFields&, const EventFields&) = default;
};

namespace codec {

inline constexpr std::uint32_t context_count = 64;
inline constexpr std::uint8_t first_tag = 0x80;  ///< tags of events: 0x80 .. 0xbf
inline constexpr std::uint8_t last_tag = first_tag + context_count - 1;
inline constexpr std::size_t longest_event = 2 + 8 + 8 * 10;  ///< bytes, no event is longer

struct Shape {
    static constexpr std::uint8_t define = 1;
    static constexpr std::uint8_t offset = 2;
    static constexpr std::uint8_t bytes = 4;
    static constexpr std::uint8_t order = 8;
    static constexpr std::uint8_t failed = 16;
    static constexpr std::uint8_t sequential = 32;
    static constexpr std::uint8_t site = 64;
    static constexpr std::uint8_t known = 127;  ///< all of them
};

struct Context {
    std::uint64_t key = 0;  ///< function, origin and file; 0: the slot is free
    std::int64_t offset = 0;
    std::int64_t stride = 0;    ///< expected distance of offsets
    std::int64_t distance = 0;  ///< the last one seen
    std::int64_t bytes = 0;
    std::int32_t sequence_step = 0;  ///< sequence minus that of the record before
    std::uint32_t parent_step = 0;   ///< sequence minus parent; 0: no parent
    std::uint32_t site = 0;
};

/// Encoder's and decoder's memory. A StreamRecord begins it anew, with the time it states.
struct State {
    std::uint64_t end = 0;  ///< of the record before
    std::uint32_t sequence = 0;
    Context contexts[context_count];

    void reset(std::uint64_t time) {
        end = time;
        sequence = 0;
        for (Context& context : contexts) context = Context{};
    }
};

inline std::uint64_t key_of(std::uint16_t function, std::uint8_t origin, std::uint32_t file) {
    return (static_cast<std::uint64_t>(file) << 24) | (static_cast<std::uint64_t>(origin) << 16) | function;
}
inline std::uint32_t slot_of(std::uint64_t key) {
    return static_cast<std::uint32_t>((key * 0x9E37'79B9'7F4A'7C15ULL) >> 58);
}
static_assert(context_count == 64, "slot_of takes the top six bits");

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
inline void learn(Context& context, std::int64_t offset, std::int64_t bytes) {
    const std::int64_t distance = difference(offset, context.offset);
    if (distance == context.distance) context.stride = distance;
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

/// Writes one event at `out`, where longest_event bytes must be free (and zero); its tag last. Returns its end.
inline std::byte* encode(State& state, const EventFields& event, std::byte* out) {
    const std::uint64_t key = key_of(event.function, event.origin, event.file);
    const std::uint32_t slot = slot_of(key);
    Context& context = state.contexts[slot];
    std::byte* const tag = out;
    std::uint8_t shape = event.failed ? Shape::failed : 0;
    out += 2;
    if (context.key != key) [[unlikely]] {
        context = Context{};
        context.key = key;
        shape |= Shape::define;
        std::memcpy(out, &event.function, 2);
        out[2] = static_cast<std::byte>(event.origin);
        out = put_varint(out + 3, event.file);
    }
    out = put_varint(out, zigzag(static_cast<std::int64_t>(event.start - state.end)));
    out = put_varint(out, event.end - event.start);
    const std::int64_t distance = difference(event.offset, context.offset);
    if (distance != context.stride) {
        if (distance == context.bytes) {
            shape |= Shape::sequential;
        } else {
            shape |= Shape::offset;
            out = put_varint(out, zigzag(distance));
        }
    }
    if (event.bytes != context.bytes) {
        shape |= Shape::bytes;
        out = put_varint(out, zigzag(difference(event.bytes, context.bytes)));
    }
    const auto sequence_step = static_cast<std::int32_t>(event.sequence - state.sequence);
    const std::uint32_t parent_step = event.parent != 0 ? event.sequence - event.parent : 0;
    const std::uint32_t order_change =
        (static_cast<std::uint32_t>(sequence_step ^ context.sequence_step)) | (parent_step ^ context.parent_step);
    // One branch for both: neither changes often.
    if ((order_change | (event.site ^ context.site)) != 0) [[unlikely]] {
        if (order_change != 0) {
            shape |= Shape::order;
            out = put_varint(out, zigzag(sequence_step));
            out = put_varint(out, parent_step);
            context.sequence_step = sequence_step;
            context.parent_step = parent_step;
        }
        if (event.site != context.site) {
            shape |= Shape::site;
            out = put_varint(out, event.site);
            context.site = event.site;
        }
    }
    learn(context, event.offset, event.bytes);
    state.end = event.end;
    state.sequence = event.sequence;
    tag[1] = static_cast<std::byte>(shape);
    __atomic_store_n(reinterpret_cast<std::uint8_t*>(tag), static_cast<std::uint8_t>(first_tag + slot),
                     __ATOMIC_RELEASE);
    return out;
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
    const std::uint32_t slot = reader.byte() - first_tag;
    const std::uint8_t shape = reader.byte();
    if (!reader.ok() || slot >= context_count || (shape & ~Shape::known) != 0) return nullptr;
    Context& context = state.contexts[slot];
    if ((shape & Shape::define) != 0) {
        const std::uint16_t low = reader.byte();
        const auto function = static_cast<std::uint16_t>(low | (reader.byte() << 8));
        const std::uint8_t origin = reader.byte();
        const std::uint64_t file = reader.varint();
        if (file > 0xffff'ffffU) return nullptr;
        context = Context{};
        context.key = key_of(function, origin, static_cast<std::uint32_t>(file));
        if (slot_of(context.key) != slot) return nullptr;
    }
    if (context.key == 0) return nullptr;
    event.function = static_cast<std::uint16_t>(context.key & 0xffffU);
    event.origin = static_cast<std::uint8_t>((context.key >> 16) & 0xffU);
    event.file = static_cast<std::uint32_t>(context.key >> 24);
    event.failed = (shape & Shape::failed) != 0;
    event.start = state.end + static_cast<std::uint64_t>(unzigzag(reader.varint()));
    event.end = event.start + reader.varint();
    std::int64_t distance = (shape & Shape::sequential) != 0 ? context.bytes : context.stride;
    if ((shape & Shape::offset) != 0) distance = unzigzag(reader.varint());
    event.offset = sum(context.offset, distance);
    event.bytes = context.bytes;
    if ((shape & Shape::bytes) != 0) event.bytes = sum(event.bytes, unzigzag(reader.varint()));
    if ((shape & Shape::order) != 0) {
        context.sequence_step = static_cast<std::int32_t>(unzigzag(reader.varint()));
        context.parent_step = static_cast<std::uint32_t>(reader.varint());
    }
    if ((shape & Shape::site) != 0) context.site = static_cast<std::uint32_t>(reader.varint());
    if (!reader.ok()) return nullptr;
    event.sequence = state.sequence + static_cast<std::uint32_t>(context.sequence_step);
    event.parent = context.parent_step != 0 ? event.sequence - context.parent_step : 0;
    event.site = context.site;
    learn(context, event.offset, event.bytes);
    state.end = event.end;
    state.sequence = event.sequence;
    return reader.at();
}

}  // namespace codec
}  // namespace ioweir::format
