#include "tracer/hooks/accesses.hpp"

#include <strings.h>

#include <cstring>

#include "base/checksum.hpp"
#include "base/spin_guard.hpp"
#include "ioweir_generated/records.hpp"

namespace ioweir::tracer {

Accesses accesses;

namespace {

constexpr std::size_t longest_representation = 128;
constexpr std::uint32_t unknown_view = ~std::uint32_t{0};  ///< there was no room for its record

}  // namespace

bool Accesses::open(MPI_File handle, std::uint32_t file, int ranks, std::int64_t pointer) {
    std::uint32_t slot = 0;
    {
        const SpinGuard guard(busy_);
        if (free_count_ > 0) {
            slot = free_[--free_count_];
        } else if (slots_used_ < HandleTable<std::uint32_t>::capacity) {
            slot = slots_used_++;
        } else {
            return false;
        }
        opened_[slot] = {file, ++handles_, 0, static_cast<std::uint32_t>(ranks), pointer};
    }
    if (slots_.insert(key_of(handle), slot + 1) && numbers_.insert(key_of(handle), no_memory | file)) return true;
    slots_.erase(key_of(handle));
    close({0, slot + 1});
    return false;
}

Accesses::Taken Accesses::take(MPI_File handle) {
    const Taken taken{numbers_.find(key_of(handle)), slots_.find(key_of(handle))};
    if (taken.number != 0) numbers_.erase(key_of(handle));
    if (taken.slot != 0) slots_.erase(key_of(handle));
    return taken;
}

void Accesses::give_back(MPI_File handle, Taken taken) {
    if (taken.slot != 0) slots_.insert(key_of(handle), taken.slot);
    if (taken.number != 0) numbers_.insert(key_of(handle), taken.number);
}

void Accesses::close(Taken taken) {
    if (taken.slot == 0) return;
    const SpinGuard guard(busy_);
    free_[free_count_++] = taken.slot - 1;
}

std::uint32_t Accesses::find_further(MPI_File handle, std::uint32_t memory) {
    const std::uint32_t slot = slots_.find(key_of(handle));
    if (slot == 0) return 0;
    std::uint32_t number = 0;
    {
        const SpinGuard guard(busy_);
        number = number_of(opened_[slot - 1], memory);
    }
    numbers_.insert(key_of(handle), static_cast<std::uint64_t>(memory) << 32 | number);
    return number;
}

std::uint32_t Accesses::find_pointer(MPI_File handle) {
    // A place counts in etypes of the view, so that the access must be one of it.
    const std::uint64_t number = numbers_.find(key_of(handle));
    return number == 0 || number >= no_memory ? find_further(handle, 0) : static_cast<std::uint32_t>(number);
}

/// The number of an access; a new one is recorded. The caller holds `busy_`.
std::uint32_t Accesses::number_of(Opened& opened, std::uint32_t memory) {
    const std::uint64_t mixed =
        ((std::uint64_t{opened.handle} << 32 | opened.view) * 0x9E37'79B9'7F4A'7C15ULL ^ memory) *
        0x9E37'79B9'7F4A'7C15ULL;
    Access& access = accesses_[(mixed >> 40) % kept];
    const bool known =
        access.number != 0 && access.handle == opened.handle && access.view == opened.view && access.memory == memory;
    if (known) return access.number;
    format::AccessRecord record{};
    record.access = tracer_->new_file_number();
    record.file = opened.file;
    record.handle = opened.handle;
    record.view = opened.view;
    record.memory = memory;
    record.ranks = opened.ranks;
    // Without room the calls name the file.
    if (!tracer_->write_record(*tracer_->thread(), format::AccessRecord::record_kind, &record, sizeof record,
                               &opened.pointer, opened.pointer != 0 ? sizeof opened.pointer : 0))
        return opened.file;
    access = {opened.handle, opened.view, memory, record.access};
    return record.access;
}

void Accesses::set_view(MPI_File handle, MPI_Offset displacement, MPI_Datatype etype, MPI_Datatype filetype,
                        const char* representation) {
    const std::uint32_t slot = slots_.find(key_of(handle));
    if (slot == 0) return;
    format::ViewRecord record{};
    record.etype = static_cast<std::uint32_t>(datatypes.find(etype).number);
    record.filetype = static_cast<std::uint32_t>(datatypes.find(filetype).number);
    record.displacement = displacement;
    const bool native = representation == nullptr || ::strcasecmp(representation, "native") == 0;
    const std::size_t bytes = native ? 0 : ::strnlen(representation, longest_representation);
    const std::uint64_t parts[] = {record.etype, record.filetype, static_cast<std::uint64_t>(displacement),
                                   bytes != 0 ? checksum(representation, bytes) : 0};
    const std::uint64_t digest = checksum(parts, sizeof parts);
    const SpinGuard guard(busy_);
    View& view = views_[digest % (sizeof views_ / sizeof *views_)];
    if (view.number == 0 || view.digest != digest) {
        record.view = ++views_count_;
        if (!tracer_->write_record(*tracer_->thread(), format::ViewRecord::record_kind, &record, sizeof record,
                                   representation, bytes))
            record.view = unknown_view;
        view = {digest, record.view};
    }
    opened_[slot - 1].view = view.number;
    // Whatever is accessed next is another access.
    numbers_.insert(key_of(handle), no_memory | static_cast<std::uint32_t>(numbers_.find(key_of(handle))));
}

}  // namespace ioweir::tracer
