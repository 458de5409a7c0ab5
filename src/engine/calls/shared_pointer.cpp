#include "engine/calls/shared_pointer.hpp"

#include <array>
#include <cerrno>
#include <cstdio>

namespace ioweir::engine {
namespace {

using container::LockedFile;

std::string name_of(std::uint64_t open) {
    std::array<char, 32> name{};
    std::snprintf(name.data(), name.size(), "pointer.%016llx", static_cast<unsigned long long>(open));
    return name.data();
}

}  // namespace

SharedPointer::SharedPointer(storage::Backend& below, const container::Directory& directory, std::uint64_t open,
                             std::int64_t begin)
    : file_(below, directory, name_of(open)), begin_(begin) {}

std::int64_t SharedPointer::place_of(LockedFile::Numbers numbers) const {
    if (numbers.first == view_) return numbers.second;
    return view_ == 1 ? begin_ : 0;
}

SharedPointer::Place SharedPointer::advance(std::int64_t etypes) {
    LockedFile::Held held = file_.take(LockedFile::Kind::exclusive);
    if (held.error() != 0) return {0, held.error()};
    const std::int64_t place = place_of(held.numbers());
    std::int64_t next = 0;
    if (__builtin_add_overflow(place, etypes, &next)) return {place, EOVERFLOW};
    return {place, etypes == 0 ? 0 : held.put({view_, next})};
}

int SharedPointer::set(std::int64_t etypes) {
    LockedFile::Held held = file_.take(LockedFile::Kind::exclusive);
    return held.error() != 0 ? held.error() : held.put({view_, etypes});
}

}  // namespace ioweir::engine
