#include "container/striped.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "container/pieces.hpp"
#include "container/sharing/replaced.hpp"

namespace ioweir::container {
namespace {

/// Flushes of a subfile that were begun and are remembered at most.
constexpr std::size_t most_begun = 4096;
/// A write of so many bytes is worth sending on to storage by itself; a shorter one may have neighbours in its pages.
constexpr std::int64_t subfile_worth_sending_bytes = 64 << 10;

}  // namespace

StripedContainer::StripedContainer(storage::Backend& below, Clock& clock, Directory directory, Subfiles subfiles)
    : Container(below, clock, std::move(directory)),
      on_targets_(subfiles.paths.empty() || !subfiles.paths.front().starts_with(directory_.path + "/")),
      subfiles_(std::make_shared<const Subfiles>(std::move(subfiles))) {}

Result<std::unique_ptr<Container>> StripedContainer::open(storage::Backend& below, Clock& clock, Directory directory,
                                                          Role role) {
    const std::uint64_t mark = places_mark(directory);
    auto subfiles = read_subfiles(directory);
    if (!subfiles) return subfiles.error();
    std::unique_ptr<StripedContainer> made(new StripedContainer(below, clock, std::move(directory), subfiles.take()));
    made->mark_ = mark;
    if (auto problem = made->join(role)) return *problem;
    return Result<std::unique_ptr<Container>>(std::move(made));
}

std::optional<Error> StripedContainer::join(const Role& role) {
    if (reload() != 0)
        return Error{"a part of an ioweir container cannot be read", problem(),
                     "was one of its files moved or removed?"};
    if (role.rank == 0) {
        // One for all, and before a byte is believed: while nobody writes, what was closed must all be there.
        const auto problems = problems_of(directory_, *now(), role.generation);
        if (!problems.empty())
            return Error{"a damaged ioweir container", problems.front(),
                         "was one of its files moved, shortened or written by something else?"};
    }
    const std::lock_guard guard(lock_);
    const bool writes = role.writes || writers_ > 0;
    if (!files_ || (role.writes && writers_ == 0)) {
        files_ = std::make_unique<DataFiles>(below_, [this, flags = writes ? O_RDWR : O_RDONLY](std::int64_t number) {
            return open_subfile(directory_, *subfiles_, number, flags);
        });
    }
    if (role.writes) ++writers_;
    if (role.after_dead) tracks_ = true;
    return std::nullopt;
}

int StripedContainer::leave(const Role& role, Left*) {
    const std::lock_guard guard(lock_);
    if (role.writes && writers_ > 0) --writers_;
    if (!role.writes || !role.after_dead) return 0;
    leave_written(role);
    if (writers_ > 0) return 0;
    tracks_ = lost_track_ = false;
    written_.clear();
    cut_ = -1;
    return 0;
}

/// In memory it is bounded, as that of an index is: 24 MiB.
void StripedContainer::track(layout::Extent written) {
    constexpr std::size_t most_runs = std::size_t{1} << 19;
    const std::lock_guard guard(lock_);
    if (lost_track_) return;
    written_.add(written, written.offset);
    if (written_.size() < most_runs) return;
    written_.assign(compacted(written_.runs()));
    lost_track_ = written_.size() > most_runs / 2;
    if (lost_track_) written_.clear();
}

void StripedContainer::leave_written(const Role& role) {
    std::vector<Run> entries = compacted(written_.runs());
    if (cut_ >= 0) entries.push_back({cut_, 0, cut_here, 0, 0, 1});
    if (entries.empty()) return;
    const std::string bytes =
        encode({{clock_.next(), role.generation, role.rank}, 0, std::move(entries)}, directory_.identity());
    if (const auto folder = directory_.opened())
        (void)folder.value()->write_new(written_file(role.generation, role.rank), bytes);
}

StripedContainer::Got StripedContainer::subfile(std::int64_t number) {
    const std::lock_guard guard(lock_);
    DataFiles::Got got = files_->get(number);
    std::string why;
    if (!got.file) {
        why = got.why;
    } else if (got.is_new) {
        why = why_not_subfile(directory_, got.file->descriptor(), number);
        if (!why.empty()) {
            why = subfiles_->path(number) + ": " + why;
            files_->forget(number);
            got = {nullptr, EIO, false};
        }
    }
    if (!why.empty()) problem_ = why;
    return {std::move(got.file), got.error};
}

void StripedContainer::find_again() {
    const std::lock_guard guard(lock_);
    if (files_) files_->forget_lost();
}

std::shared_ptr<const Subfiles> StripedContainer::now() const {
    const std::lock_guard guard(lock_);
    return subfiles_;
}

int StripedContainer::reload(std::optional<std::int64_t> first) {
    const std::lock_guard guard(lock_);
    if (first) due_ = std::max(due_, *first);
    const std::uint64_t mark = places_mark(directory_);
    if (mark == 0 || mark != mark_) {
        auto read = read_subfiles(directory_);
        if (!read) {
            problem_ = read.error().message();
            stale_ = true;
            return EIO;
        }
        subfiles_ = std::make_shared<const Subfiles>(read.take());
        mark_ = mark;
    }
    stale_ = subfiles_->divisions.back().first_file < due_;
    if (stale_) problem_ = directory_.path + "/places: it is older than what another rank has written there";
    return stale_ ? EIO : 0;
}

Container::InUse StripedContainer::in_use() const {
    const auto subfiles = now();
    return {subfiles->divisions.back().first_file, subfiles->divisions.back().count};
}

std::optional<Error> StripedContainer::redivide(const std::vector<std::int64_t>& files) {
    const auto subfiles = now();
    const auto bytes = container::length(directory_, *subfiles);
    if (!bytes) return bytes.error();
    const std::int64_t first = (bytes.value() + subfiles->stripe_bytes - 1) / subfiles->stripe_bytes;
    // A directory is a target by itself; elsewhere the storage has to be told.
    const auto targets = storage::find_targets(directory_.path);
    const bool told = targets && !targets.value()->abilities().directories;
    auto next = container::redivide(directory_, *subfiles, first, files,
                                    told ? make_beside(*subfiles, files, *targets.value()) : SubfileMaker());
    if (!next) return next.error();
    // From here on it is so, whatever else may fail.
    const std::lock_guard guard(lock_);
    subfiles_ = std::make_shared<const Subfiles>(next.take());
    mark_ = places_mark(directory_);
    return std::nullopt;
}

Container::Work& StripedContainer::work_of(std::int64_t number) {
    if (std::ssize(work_) <= number) work_.resize(static_cast<std::size_t>(number) + 1);
    return work_[static_cast<std::size_t>(number)];
}

void StripedContainer::add_work(std::int64_t number, std::int64_t bytes, std::int64_t ns) {
    const std::lock_guard guard(lock_);
    Work& work = work_of(number);
    work.bytes += bytes;
    work.ns += ns;
}

std::vector<Container::Work> StripedContainer::take_work() {
    const std::lock_guard guard(lock_);
    std::vector<Work> work = std::exchange(work_, {});
    work.resize(subfiles_->paths.size());
    return work;
}

int StripedContainer::flush(bool durable) {
    if (!durable) return 0;
    std::vector<std::int64_t> dirty;
    {
        const std::lock_guard guard(lock_);
        dirty.assign(dirty_.begin(), dirty_.end());
        dirty_.clear();
        // Another one first each time: what waits for the first one's target tells nothing of the others'.
        if (!dirty.empty())
            std::rotate(dirty.begin(), dirty.begin() + static_cast<std::ptrdiff_t>(flushes_++ % dirty.size()),
                        dirty.end());
    }
    int first = 0;
    std::vector<Got> files;
    for (const std::int64_t number : dirty) {
        files.push_back(subfile(number));
        // All targets at work, before one is waited for. Where it is not possible the wait below does it.
        if (files.back().file) storage::begin_flush_of_file(files.back().file->descriptor());
    }
    const storage::Moment begin = storage::now();
    for (std::size_t i = 0; i < dirty.size(); ++i) {
        const storage::Moment before = storage::now();
        const int error = !files[i].file ? files[i].error : ::fdatasync(files[i].file->descriptor()) != 0 ? errno : 0;
        if (watches_) add_work(dirty[i], 0, storage::sync_ns(begin, before, storage::now()));
        if (error == 0) continue;
        if (first == 0) first = error;
        const std::lock_guard guard(lock_);
        dirty_.insert(dirty[i]);
    }
    if (const int error = reload(); first == 0) first = error;
    return first;
}

std::int64_t StripedContainer::length() {
    const auto found = container::length(directory_, *now());
    if (found) return found.value();
    const std::lock_guard guard(lock_);
    problem_ = found.error().message();
    return -1;
}

int StripedContainer::set_length(std::int64_t bytes) {
    // In this order a crash in between leaves nothing that looks like damage.
    if (const int error = forget_sizes(directory_); error != 0) return error;
    const int error = container::set_length(directory_, *now(), bytes);
    const std::lock_guard guard(lock_);
    if (error == 0 && tracks_) cut_ = cut_ < 0 ? bytes : std::min(cut_, bytes);
    return error;
}

std::string StripedContainer::problem() const {
    const std::lock_guard guard(lock_);
    return problem_;
}

std::int64_t StripedContainer::attempt_write(int, const iovec* pieces, int count, std::int64_t offset) {
    const Spot spot = now()->spot_of(offset);
    {
        const std::lock_guard guard(lock_);
        if (writers_ == 0) return -EBADF;
        if (stale_) return -EIO;
        dirty_.insert(spot.file);
    }
    const Got got = subfile(spot.file);
    if (!got.file) return -got.error;
    const std::int64_t place = subfile_header_bytes + spot.place;
    const storage::Moment begin = watches_ ? storage::now() : storage::Moment();
    std::int64_t moved = 0;
    if (storage::total_bytes(pieces, count) <= spot.bytes) {
        moved = below_.attempt_write(got.file->descriptor(), pieces, count, place);
    } else {
        const Beginning part(pieces, count, spot.bytes);
        moved = below_.attempt_write(got.file->descriptor(), part.pieces.data(), part.count, place);
    }
    if (watches_ && moved > 0) add_work(spot.file, moved, storage::ns_between(begin, storage::now()));
    if (moved > 0 && tracks_) track({offset, moved});
    if (moved > 0) send_on(*got.file, spot, moved);
    return moved;
}

/// Where subfiles lie on targets of their own, none of these may stand idle while bytes for it lie in the page cache: a stripe goes on its
/// way when it is complete, or a larger part of it at once.
void StripedContainer::send_on(const DataFile& file, const Spot& spot, std::int64_t moved) {
    if (!on_targets_) return;
    const std::int64_t bytes = moved == spot.bytes ? now()->stripe_bytes : moved;
    if (bytes < subfile_worth_sending_bytes) return;
    below_.begin_flush(file.descriptor(), bytes, subfile_header_bytes + spot.place + moved - bytes);
}

std::int64_t StripedContainer::attempt_read(int, const iovec* pieces, int count, std::int64_t offset) {
    const Spot spot = now()->spot_of(offset);
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
        const Spot spot = now()->spot_of(offset + done);
        const std::int64_t part = std::min(bytes - done, spot.bytes);
        const Got got = subfile(spot.file);
        if (!got.file) return -got.error;
        const storage::Moment begin = storage::now();
        const int result = below_.attempt_flush(got.file->descriptor(), part, subfile_header_bytes + spot.place);
        if (result != 0) return result;
        done += part;
        if (!watches_) continue;
        const storage::Moment end = storage::now();
        const std::lock_guard guard(lock_);
        work_of(spot.file).ns += on_their_way_[spot.file].add_waited({spot.place, part}, begin, end);
    }
    return 0;
}

void StripedContainer::begin_flush(int, std::int64_t bytes, std::int64_t offset) {
    for (std::int64_t done = 0; done < bytes;) {
        const Spot spot = now()->spot_of(offset + done);
        const std::int64_t part = std::min(bytes - done, spot.bytes);
        done += part;
        const Got got = subfile(spot.file);
        if (!got.file) continue;  // whoever waits for it is told
        if (watches_) {
            const std::lock_guard guard(lock_);
            storage::Flushes& flushes = on_their_way_[spot.file];
            if (flushes.count() >= most_begun) flushes.forget();  // nobody waits for them
            flushes.note({spot.place, part}, storage::now());
        }
        below_.begin_flush(got.file->descriptor(), part, subfile_header_bytes + spot.place);
    }
}

}  // namespace ioweir::container
