#include "container/striped.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "container/pieces.hpp"

namespace ioweir::container {

StripedContainer::StripedContainer(storage::Backend& below, Clock& clock, Directory directory, Subfiles subfiles)
    : Container(below, clock, std::move(directory)), subfiles_(std::move(subfiles)) {}

Result<std::unique_ptr<Container>> StripedContainer::open(storage::Backend& below, Clock& clock, Directory directory,
                                                          Role role) {
    auto subfiles = read_subfiles(directory);
    if (!subfiles) return subfiles.error();
    std::unique_ptr<Container> made(new StripedContainer(below, clock, std::move(directory), subfiles.take()));
    if (auto problem = made->join(role)) return *problem;
    return made;
}

std::optional<Error> StripedContainer::join(const Role& role) {
    if (role.rank == 0) {
        // One for all, and before a byte is believed: while nobody writes, what was closed must all be there.
        const auto generations = generations_in(directory_);
        if (!generations) return generations.error();
        const auto& open = generations.value().open;
        const bool alone = open.empty() || (open.size() == 1 && open.front() == role.generation);
        const auto problems = problems_of(directory_, subfiles_, alone);
        if (!problems.empty())
            return Error{"a damaged ioweir container", problems.front(),
                         "was one of its files moved, shortened or written by something else?"};
    }
    const std::lock_guard guard(lock_);
    const bool writes = role.writes || writers_ > 0;
    if (!files_ || (role.writes && writers_ == 0)) {
        files_ = std::make_unique<DataFiles>(
            below_, [this](std::int64_t number) { return subfiles_.path(number); }, writes ? O_RDWR : O_RDONLY);
    }
    if (role.writes) ++writers_;
    return std::nullopt;
}

int StripedContainer::leave(const Role& role, Left*) {
    const std::lock_guard guard(lock_);
    if (role.writes && writers_ > 0) --writers_;
    return 0;
}

StripedContainer::Got StripedContainer::subfile(std::int64_t number) {
    const std::lock_guard guard(lock_);
    DataFiles::Got got = files_->get(number);
    std::string why;
    if (!got.file) {
        why = std::strerror(got.error);
    } else if (got.is_new) {
        why = why_not_subfile(directory_, got.file->descriptor(), number);
        if (!why.empty()) {
            files_->forget(number);
            got = {nullptr, EIO, false};
        }
    }
    if (!why.empty()) problem_ = subfiles_.path(number) + ": " + why;
    return {std::move(got.file), got.error};
}

int StripedContainer::flush(bool durable) {
    if (!durable) return 0;
    std::set<std::int64_t> dirty;
    {
        const std::lock_guard guard(lock_);
        dirty = std::exchange(dirty_, {});
    }
    int first = 0;
    for (const std::int64_t number : dirty) {
        const Got got = subfile(number);
        const int error = !got.file ? got.error : ::fdatasync(got.file->descriptor()) != 0 ? errno : 0;
        if (error == 0) continue;
        if (first == 0) first = error;
        const std::lock_guard guard(lock_);
        dirty_.insert(number);
    }
    return first;
}

std::int64_t StripedContainer::length() {
    const auto found = container::length(directory_, subfiles_);
    if (found) return found.value();
    const std::lock_guard guard(lock_);
    problem_ = found.error().message();
    return -1;
}

int StripedContainer::set_length(std::int64_t bytes) {
    // In this order a crash in between leaves nothing that looks like damage.
    if (const int error = forget_sizes(directory_); error != 0) return error;
    return container::set_length(directory_, subfiles_, bytes);
}

std::string StripedContainer::problem() const {
    const std::lock_guard guard(lock_);
    return problem_;
}

std::int64_t StripedContainer::attempt_write(int, const iovec* pieces, int count, std::int64_t offset) {
    const Spot spot = spot_of(directory_.shape, offset);
    {
        const std::lock_guard guard(lock_);
        if (writers_ == 0) return -EBADF;
        dirty_.insert(spot.file);
    }
    const Got got = subfile(spot.file);
    if (!got.file) return -got.error;
    const std::int64_t place = subfile_header_bytes + spot.place;
    if (storage::total_bytes(pieces, count) <= spot.bytes)
        return below_.attempt_write(got.file->descriptor(), pieces, count, place);
    const Beginning part(pieces, count, spot.bytes);
    return below_.attempt_write(got.file->descriptor(), part.pieces.data(), part.count, place);
}

std::int64_t StripedContainer::attempt_read(int, const iovec* pieces, int count, std::int64_t offset) {
    const Spot spot = spot_of(directory_.shape, offset);
    const Got got = subfile(spot.file);
    if (!got.file) return -got.error;
    const Beginning part(pieces, count, spot.bytes);
    const std::int64_t place = subfile_header_bytes + spot.place;
    const std::int64_t moved = below_.attempt_read(got.file->descriptor(), part.pieces.data(), part.count, place);
    if (moved != 0) return moved;
    // Beyond the end of its subfile lie zeros, as far as the logical file goes.
    const std::int64_t end = length();
    if (end < 0) return -EIO;
    return Beginning(pieces, count, std::min(spot.bytes, std::max<std::int64_t>(0, end - offset))).clear();
}

int StripedContainer::attempt_flush(int, std::int64_t bytes, std::int64_t offset) {
    for (std::int64_t done = 0; done < bytes;) {
        const Spot spot = spot_of(directory_.shape, offset + done);
        const std::int64_t now = std::min(bytes - done, spot.bytes);
        const Got got = subfile(spot.file);
        if (!got.file) return -got.error;
        const int result = below_.attempt_flush(got.file->descriptor(), now, subfile_header_bytes + spot.place);
        if (result != 0) return result;
        done += now;
    }
    return 0;
}

}  // namespace ioweir::container
