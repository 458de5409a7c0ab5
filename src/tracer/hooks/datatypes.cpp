#include "tracer/hooks/datatypes.hpp"

#include <cstdlib>
#include <span>

#include "base/checksum.hpp"
#include "base/spin_guard.hpp"
#include "format/event_codec.hpp"
#include "ioweir_generated/records.hpp"
#include "mpi/datatype_contents.hpp"

namespace ioweir::tracer {

Datatypes datatypes;

extern "C" {
static int ioweir_type_goes(MPI_Datatype, int, void*, void*) {
    datatypes.forget();
    return MPI_SUCCESS;
}
// MPI_TYPE_NULL_COPY_FN is a symbol of the MPI library in Open MPI, which a back end must not need.
static int ioweir_copy_no_type_number(MPI_Datatype, int, void*, void*, void*, int* flag) {
    *flag = 0;
    return MPI_SUCCESS;
}
}

namespace {

using format::Constructor;

constexpr int deepest = 32;                                   ///< types made from types; what is deeper is `other`
constexpr std::uint32_t most_walked = 1U << 16;               ///< for one type; what comes later is `other`
constexpr std::size_t most_values = std::size_t{1} << 17;     ///< of one type that is recorded
constexpr std::size_t most_types = 1024;                      ///< that one is made from
constexpr std::size_t most_before = 64;                       ///< of those, looked through for the same one
constexpr std::uint64_t most_bytes = std::uint64_t{1} << 24;  ///< of all types' values of a process
constexpr std::size_t longest_varint = 10;
constexpr std::size_t part_bytes = std::size_t{1}
                                   << 14;  ///< a record's payload; more than the types' numbers or a name take
static_assert(part_bytes > most_types * sizeof(std::uint32_t) + longest_varint && part_bytes > MPI_MAX_OBJECT_NAME);

static_assert(static_cast<std::uint8_t>(Constructor::other) == static_cast<std::uint8_t>(TypeConstructor::other));
static_assert(static_cast<std::uint8_t>(Constructor::structure) ==
              static_cast<std::uint8_t>(TypeConstructor::structure));

class Freed {
public:
    explicit Freed(void* memory) : memory_(memory) {}
    ~Freed() { std::free(memory_); }
    Freed(const Freed&) = delete;
    Freed& operator=(const Freed&) = delete;

private:
    void* memory_;
};

/// Writes a type in as many parts as its values need. Returns the bytes written; 0 when there was no room.
std::uint64_t write_parts(const Tracer& tracer, format::TypeRecord record, std::span<const std::int64_t> values,
                          std::span<const std::uint32_t> types, const char* name) {
    auto* const text = static_cast<std::byte*>(std::malloc(part_bytes));
    const Freed freed(text);
    if (text == nullptr) return 0;
    ThreadStream& stream = *tracer.thread();
    std::size_t used = types.size_bytes();
    if (used != 0) std::memcpy(text, types.data(), used);
    if (name != nullptr) {
        used = std::strlen(name) + 1;
        std::memcpy(text, name, used);
    }
    std::uint64_t written = 0;
    std::int64_t before = 0;
    std::size_t next = 0;
    do {
        record.first = static_cast<std::uint32_t>(next);
        for (; next < values.size() && used + longest_varint <= part_bytes; ++next) {
            const std::uint64_t step = format::codec::zigzag(format::codec::difference(values[next], before));
            used = static_cast<std::size_t>(format::codec::put_varint(text + used, step) - text);
            before = values[next];
        }
        record.count = static_cast<std::uint32_t>(next) - record.first;
        if (!tracer.write_record(stream, format::TypeRecord::record_kind, &record, sizeof record, text, used)) return 0;
        written += sizeof record + used;
        used = 0;
    } while (next < values.size());
    return written;
}

}  // namespace

KnownType Datatypes::find_made(MPI_Datatype type, std::uint64_t handle) {
    if (type == MPI_DATATYPE_NULL) return {};  // the call returns an error, asking would end the program
    if (const auto known = made_.find(handle)) return *known;
    return ask(type, handle);
}

KnownType Datatypes::ask(MPI_Datatype type, std::uint64_t handle) {
    const std::uint32_t age = made_.age();
    MPI_Count size = 0;
    if (PMPI_Type_size_x(type, &size) != MPI_SUCCESS || size < 0) return {};
    const SpinGuard guard(busy_);
    bool lasts = false;
    walked_ = 0;
    const std::uint32_t number = record(type, size, 0, lasts);
    const KnownType known{size, number};
    if (lasts) {
        Entry& entry = lasting_[place_of(handle)];
        if (entry.taken.exchange(true, std::memory_order_relaxed)) return known;
        entry.bytes.store(size, std::memory_order_relaxed);
        entry.number.store(number, std::memory_order_relaxed);
        entry.handle.store(handle, std::memory_order_release);
    } else if (is_watched(type)) {
        made_.keep(handle, known, age);
    }
    return known;
}

/// Whether the type has the attribute that tells when it goes: record() gives it one, with its number.
bool Datatypes::is_watched(MPI_Datatype type) {
    void* value = nullptr;
    int found = 0;
    return key_ != MPI_KEYVAL_INVALID && PMPI_Type_get_attr(type, key_, &value, &found) == MPI_SUCCESS && found != 0;
}

/// The number of what record() has found, which is written when it is new; 0: there was no room.
std::uint32_t Datatypes::number_of_content(format::TypeRecord& record, std::span<const std::int64_t> values,
                                           std::span<const std::uint32_t> types, const char* name) {
    Content& content = contents_[record.digest % kept];
    if (content.number != 0 && content.digest == record.digest) return content.number;
    record.type = ++next_number_;
    const std::uint64_t written = write_parts(*tracer_, record, values, types, name);
    if (written == 0) return 0;
    recorded_bytes_ += written;
    content = {record.digest, record.type};
    return record.type;
}

/// The type's number; the caller holds `busy_`.
std::uint32_t Datatypes::record(MPI_Datatype type, std::int64_t size, int depth, bool& lasts) {
    if (key_ == MPI_KEYVAL_INVALID)
        PMPI_Type_create_keyval(ioweir_copy_no_type_number, ioweir_type_goes, &key_, nullptr);
    if (key_ != MPI_KEYVAL_INVALID && depth == 0) {
        void* value = nullptr;
        int found = 0;
        PMPI_Type_get_attr(type, key_, &value, &found);
        if (found != 0) return static_cast<std::uint32_t>(reinterpret_cast<std::uintptr_t>(value));
    }
    const mpi::DatatypeContents contents(type);
    const mpi::TypeBounds bounds = mpi::bounds_of(type);
    lasts = contents.constructor == TypeConstructor::named;
    format::TypeRecord record{};
    record.constructor = static_cast<std::uint32_t>(contents.constructor);
    record.size = size;
    record.lower = bounds.lower;
    record.extent = bounds.extent;
    record.values = static_cast<std::uint32_t>(contents.values.size());
    record.types = static_cast<std::uint32_t>(contents.types.size());
    char name[MPI_MAX_OBJECT_NAME + 1] = {};
    std::span<const std::int64_t> values = contents.values;
    const bool absurd = depth > deepest || contents.values.size() > most_values || contents.types.size() > most_types ||
                        recorded_bytes_ > most_bytes || ++walked_ > most_walked;
    std::uint64_t digest = checksum(contents.values.data(), contents.values.size_bytes());
    if (absurd) {
        record.constructor = static_cast<std::uint32_t>(Constructor::other);
        record.types = 0;
        values = {};
    }
    if (lasts) {
        int length = 0;
        PMPI_Type_get_name(type, name, &length);
        digest = checksum(name, std::strlen(name));
    }
    // Not on the stack, which the program chose, and of which types in types would take a multiple.
    auto* const types = static_cast<std::uint32_t*>(std::calloc(record.types + 1, sizeof(std::uint32_t)));
    if (types == nullptr) return 0;
    const Freed freed(types);
    record_inner(contents.types.first(record.types), depth + 1, types);
    const std::uint64_t parts[] = {digest,
                                   checksum(types, record.types * sizeof *types),
                                   record.constructor,
                                   static_cast<std::uint64_t>(record.size),
                                   static_cast<std::uint64_t>(record.lower),
                                   static_cast<std::uint64_t>(record.extent),
                                   record.values};
    record.digest = checksum(parts, sizeof parts);
    const std::uint32_t number = number_of_content(record, values, {types, record.types}, lasts ? name : nullptr);
    if (number == 0) return 0;
    if (!lasts && depth == 0 && key_ != MPI_KEYVAL_INVALID)
        PMPI_Type_set_attr(type, key_, reinterpret_cast<void*>(static_cast<std::uintptr_t>(number)));
    return number;
}

/// The numbers of the types that one is made from. A type that is there twice is walked through once, or types of two of the
/// one before would take a time that doubles with every level. Beyond these types the same handle may stand for another:
/// Open MPI makes them anew.
void Datatypes::record_inner(std::span<const MPI_Datatype> types, int depth, std::uint32_t* numbers) {
    for (std::size_t i = 0; i < types.size(); ++i) {
        std::size_t same = i > most_before ? i - most_before : 0;
        while (same < i && types[same] != types[i]) ++same;
        if (same < i) {
            numbers[i] = numbers[same];
            continue;
        }
        MPI_Count bytes = 0;
        bool unused = false;
        PMPI_Type_size_x(types[i], &bytes);
        numbers[i] = record(types[i], bytes, depth, unused);
    }
}

void Datatypes::release() {
    const SpinGuard guard(busy_);
    if (key_ != MPI_KEYVAL_INVALID) PMPI_Type_free_keyval(&key_);
    key_ = MPI_KEYVAL_INVALID;
}

}  // namespace ioweir::tracer
