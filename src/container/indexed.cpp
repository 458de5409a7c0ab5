#include "container/indexed.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <iterator>
#include <utility>

#include "container/files/data_header.hpp"
#include "container/files/placed_log.hpp"
#include "container/pieces.hpp"

namespace ioweir::container {
namespace {

using layout::Extent;

constexpr std::size_t first_room = 4096;
/// Appended to a log on a target of its own, before it is sent on to storage.
constexpr std::int64_t worth_sending_bytes = 1 << 20;
/// What waits for a flush at most, and the largest write that does: copying it costs less than the system call that it saves.
constexpr std::size_t most_waiting_bytes = 256 << 10;
constexpr std::int64_t largest_waiting_bytes = 16 << 10;
/// Runs of 48 bytes that are kept in memory at most: 24 MiB. And pieces of a process that reads, too: twice as much.
constexpr std::size_t most_room = std::size_t{1} << 19;

/// Writes of two processes that wait for each other in ways which nobody tells us of are in order if their batches were begun in that
/// order. So batches are short at first; they become longer, lest an index grow with the time that a program takes: after an hour it has
/// about 2,500 of them.
constexpr std::int64_t shortest_batch_ns = 50'000;
constexpr std::uint32_t batches_of_a_length = 128;

/// `later` hides what it covers of the map.
void lay_over(std::map<std::int64_t, Segment>& map, Segment later) {
    auto at = map.upper_bound(later.logical.offset);
    if (at != map.begin()) --at;
    while (at != map.end() && at->second.logical.offset < later.logical.end()) {
        const Segment old = at->second;
        if (old.logical.end() <= later.logical.offset) {
            ++at;
            continue;
        }
        at = map.erase(at);
        if (old.logical.offset < later.logical.offset)
            map[old.logical.offset] = {
                {old.logical.offset, later.logical.offset - old.logical.offset}, old.place, old.source};
        if (old.logical.end() > later.logical.end()) {
            const std::int64_t skipped = later.logical.end() - old.logical.offset;
            map[later.logical.end()] = {
                {later.logical.end(), old.logical.end() - later.logical.end()}, old.place + skipped, old.source};
        }
    }
    // Programs write from front to back: one segment grows.
    if (const auto next = map.lower_bound(later.logical.offset); next != map.begin()) {
        Segment& before = std::prev(next)->second;
        if (before.logical.end() == later.logical.offset && before.source == later.source &&
            before.place + before.logical.length == later.place) {
            before.logical.length += later.logical.length;
            return;
        }
    }
    map[later.logical.offset] = later;
}

}  // namespace

IndexedContainer::IndexedContainer(storage::Backend& below, Clock& clock, Directory directory)
    : Container(below, clock, std::move(directory)),
      identity_(directory_.identity()),
      index_(below_),
      longest_ns_(shortest_batch_ns),
      room_(first_room),
      files_(below_, [this](std::int64_t source) { return open_data(directory_, source); }) {}

Result<std::unique_ptr<Container>> IndexedContainer::open(storage::Backend& below, Clock& clock, Directory directory,
                                                          Role role) {
    std::unique_ptr<Container> made(new IndexedContainer(below, clock, std::move(directory)));
    if (auto problem = made->join(role)) return *problem;
    return made;
}

std::optional<Error> IndexedContainer::join(const Role& role) {
    const std::lock_guard guard(lock_);
    // Now rather than at the first read or write: an error of MPI_File_open is one that programs expect.
    if (role.writes && !data_) {
        if (auto problem = open_own(role)) return problem;
    }
    if (role.reads && !reads_) {
        // What was written before anybody wanted to read it can be read like others' bytes.
        if (const int error = flush_now(false); error != 0)
            return Error{"the index of an ioweir container cannot be written",
                         directory_.path + ": " + std::strerror(error), "is there room on its file system?"};
        if (load() != 0) return Error{problem_, "", ""};
        reads_ = true;
    }
    seal();  // others have opened it, too
    if (role.rank == 0 && !directory_.is_log()) {
        if (auto problem = check_groups(role)) return problem;
    }
    if (role.writes) writers_.push_back({role.generation, role.rank});
    tracks_ = tracks_ || role.after_dead;
    return std::nullopt;
}

int IndexedContainer::leave(const Role& role, Left* left) {
    const std::lock_guard guard(lock_);
    const int error = flush_now(false);
    const auto writer = std::find(writers_.begin(), writers_.end(), Writer{role.generation, role.rank});
    if (!role.writes || writer == writers_.end()) return error;
    if (writer == writers_.begin() && index_.is_open()) {
        if (left != nullptr) *left = Left::of(role.generation, role.rank, index_.bytes());
        index_.close();
    }
    writers_.erase(writer);
    if (writers_.empty()) {  // after an error, which is told: nobody could put it into an index any more
        waiting_bytes_.clear();
        fresh_.clear();
        fresh_since_ = no_batch;
        sealed_.clear();
        sealed_runs_ = 0;
    }
    return error;
}

std::optional<Error> IndexedContainer::check_groups(const Role& role) const {
    const auto generations = generations_in(directory_);
    if (!generations) return generations.error();
    // Who writes may just be about to shorten it.
    const bool alone = generations.value().only(role.generation);
    std::vector<std::int64_t> needed(static_cast<std::size_t>(directory_.shape.count), 0);
    if (alone && loaded_) needed = known_.ends(directory_.shape.count);
    for (std::size_t group = 0; group < needed.size(); ++group) {
        const std::string why = why_not_whole(directory_, static_cast<std::int64_t>(group), needed[group]);
        if (!why.empty())
            return Error{"a damaged ioweir container", why,
                         "was one of its files moved, shortened or written by something else?"};
    }
    return std::nullopt;
}

std::optional<Error> IndexedContainer::open_own(const Role& role) {
    own_source_ = directory_.is_log() ? log_source(role.generation, role.rank) : role.group;
    on_target_ = directory_.is_log() && !role.place.empty();
    place_ = role.place;
    const auto cannot = [&](const std::string& why) {
        return Error{"a part of an ioweir container cannot be opened", why,
                     on_target_ ? "targets in the plan are directories that are there and may be written"
                                : "the directory belongs beside the file of which it holds the bytes"};
    };
    const std::string where =
        on_target_ ? placed_log(directory_, role.place, own_source_) : directory_.data(own_source_);
    if (directory_.is_log() && !on_target_) {
        if (const int error = make_folder_of_log(directory_, own_source_); error != 0)
            return cannot(where + ": " + std::strerror(error));
    }
    bool readable = true;
    const int flags = directory_.is_log() ? O_CREAT | O_EXCL : 0;
    auto file = on_target_ ? make_placed_log(directory_, role.place, own_source_)
                           : open_data(directory_, own_source_, O_RDWR | flags);
    if (!file && file.error().number == EACCES && !on_target_) {
        file = open_data(directory_, own_source_, O_WRONLY | flags);
        readable = false;
    }
    if (!file) return cannot(missing(where, file.error()).value);
    const int descriptor = file.value().descriptor();
    auto data = take_over(below_, file.take());
    if (directory_.is_log()) {
        const std::string header = data_header(directory_, own_source_);
        const storage::Transfer done = below_.write_at(descriptor, header.data(), std::ssize(header), 0);
        if (done.error != 0) {
            remove_log(directory_, own_source_);
            return cannot(where + ": " + std::strerror(done.error));
        }
        sent_end_ = log_end_ = data_header_bytes;
        waits_ = role.waits && !on_target_;
    } else if (readable) {
        if (const std::string why = why_not_data(directory_, descriptor, own_source_); !why.empty())
            return cannot(where + ": " + why);
    }
    data_ = std::move(data);
    return std::nullopt;
}

int IndexedContainer::load() {
    known_ = {};
    ahead_.forget();
    if (shown_) {
        // Others may have written over it since. The indexes say so, if all of it is in them.
        if (const int error = append_all(false); error != 0) {
            problem_ = "its index cannot be written: " + std::string(std::strerror(error));
            return error;
        }
        forget_own();
        fresh_end_ = 0;
        shown_ = false;
    }
    auto indexes = read_indexes(directory_);
    if (!indexes) {
        problem_ = indexes.error().message();
        return EIO;
    }
    learn(indexes.value().last);
    known_ = std::move(indexes.value().map);
    loaded_ = true;
    return 0;
}

std::string IndexedContainer::problem() const {
    const std::lock_guard guard(lock_);
    return problem_;
}

void IndexedContainer::seal() {
    if (fresh_.empty()) return;
    sealed_.push_back({fresh_stamp_, compacted(fresh_.runs())});
    sealed_runs_ += sealed_.back().entries.size();
    fresh_.clear();
    fresh_since_ = no_batch;
}

void IndexedContainer::begin_batch() {
    const std::lock_guard guard(lock_);
    seal();
}

void IndexedContainer::begin_call() {
    const std::int64_t since = fresh_since_.load(std::memory_order_relaxed);
    if (since == no_batch) return;
    const std::int64_t now = clock_.time_ns();
    if (now >= since && now - since <= longest_ns_.load(std::memory_order_relaxed)) return;
    const std::lock_guard guard(lock_);
    if (fresh_.empty() || fresh_since_ != since) return;
    seal();
    if (++timed_out_ % batches_of_a_length == 0) longest_ns_ = 2 * longest_ns_;
}

void IndexedContainer::record(Extent written, std::int64_t place) {
    if (fresh_.empty()) {
        fresh_stamp_ = clock_.next();
        fresh_since_ = clock_.time_ns();
        for (IndexWatcher* const watcher : watchers_) watcher->written();
    }
    fresh_.add(written, place);
    fresh_end_ = std::max(fresh_end_, written.end());
    if (!reads_) return;
    ahead_.forget(own_source_, place, written.length);
    unread_.add(written, place);
    ++unread_pieces_;
}

void IndexedContainer::forget_own() {
    own_.clear();
    unread_.clear();
    unread_pieces_ = 0;
}

void IndexedContainer::lay_unread_over() {
    if (unread_pieces_ == 0) return;
    for (const Run& run : unread_.runs())
        for (std::int64_t i = 0; i < run.count; ++i) lay_over(own_, run.piece(i, own_source_));
    unread_.clear();
    unread_pieces_ = 0;
}

std::int64_t IndexedContainer::keep_waiting(const iovec* pieces, int count, const Extent* parts, std::int64_t bytes) {
    const auto more = static_cast<std::size_t>(bytes);
    const bool fits = waiting_bytes_.size() + more <= most_waiting_bytes;
    if (!fits || waiting_place_ + std::ssize(waiting_bytes_) != log_end_) {
        if (const int error = write_waiting(); error != 0) return -error;
        waiting_place_ = log_end_;
    }
    if (waiting_bytes_.capacity() == 0) waiting_bytes_.reserve(most_waiting_bytes);
    for (int i = 0; i < count; ++i) {
        const auto* const from = static_cast<const std::byte*>(pieces[i].iov_base);
        waiting_bytes_.insert(waiting_bytes_.end(), from, from + pieces[i].iov_len);
    }
    for (std::int64_t recorded = 0; recorded < bytes; ++parts) {
        record(*parts, log_end_ + recorded);
        recorded += parts->length;
    }
    log_end_ += bytes;
    return bytes;
}

int IndexedContainer::write_waiting() {
    if (waiting_bytes_.empty()) return 0;
    const storage::Transfer done =
        below_.write_at(data_->descriptor(), waiting_bytes_.data(), std::ssize(waiting_bytes_),
                        directory_.data_begin() + waiting_place_);
    if (done.error != 0) return done.error;
    waiting_bytes_.clear();
    return 0;
}

int IndexedContainer::make_room() {
    if (own_.size() + unread_pieces_ < most_room) {
        if (waiting() < room_) return 0;
        fresh_.assign(compacted(fresh_.runs()));
        if (waiting() <= most_room / 2) {
            room_ = std::max(first_room, 2 * waiting());
            return 0;
        }
    }
    const int error = append_all(false);
    if (error == 0) {
        // Read from now on like others' bytes.
        forget_own();
        loaded_ = false;
    }
    return error;
}

int IndexedContainer::append_all(bool durable) {
    seal();
    if (sealed_.empty()) return 0;
    if (const int error = append(sealed_, durable); error != 0) return error;
    sealed_.clear();
    sealed_runs_ = 0;
    room_ = first_room;
    for (IndexWatcher* const watcher : watchers_) watcher->indexed();
    return 0;
}

int IndexedContainer::append(const std::vector<Sealed>& batches, bool durable) {
    if (writers_.empty()) return EBADF;
    if (const int error = write_waiting(); error != 0) return error;
    const Writer& writer = writers_.front();
    if (!index_.is_open()) {
        const auto folder = directory_.opened();
        if (!folder) return folder.error().number;
        index_name_ = directory_.index_name(own_source_, writer.generation, writer.rank);
        auto file = folder.value()->file(index_name_, O_RDWR | O_CREAT | O_TRUNC);
        if (!file) return file.error().number;
        index_.begin(file.take());
    }
    encoded_.clear();
    for (const Sealed& batch : batches)
        encode_behind(encoded_, {batch.stamp, writer.generation, writer.rank}, own_source_, batch.entries, identity_);
    const int error = index_.append(encoded_, durable);
    if (error == 0) learn(batches.back().stamp);
    return error;
}

int IndexedContainer::flush(bool durable) {
    const std::lock_guard guard(lock_);
    return flush_now(durable);
}

int IndexedContainer::show() {
    const std::lock_guard guard(lock_);
    if (!data_) return 0;
    if (const int error = append_all(false); error != 0) return error;
    shown_ = true;
    return 0;
}

int IndexedContainer::flush_now(bool durable) {
    loaded_ = false;
    if (!data_) return 0;
    if (const int error = write_waiting(); error != 0) return error;
    if (durable) {
        if (const int error = sync_data(); error != 0) return error;
    }
    if (const int error = append_all(durable); error != 0) return error;
    fresh_end_ = 0;
    forget_own();
    return 0;
}

void IndexedContainer::find_again() {
    const std::lock_guard guard(lock_);
    files_.forget_lost();
    if (data_ && !data_->is_intact()) {
        auto found = open_data(directory_, own_source_, O_RDWR);
        if (!found && found.error().number == EACCES) found = open_data(directory_, own_source_, O_WRONLY);
        data_ = data_->found_again(found ? found.take() : guarded::File());
    }
    if (!index_.is_open() || index_.is_intact()) return;
    guarded::File found;
    if (const auto folder = directory_.opened()) {
        if (auto file = folder.value()->file(index_name_, O_RDWR)) found = file.take();
    }
    index_.go_on_with(std::move(found));
}

std::int64_t IndexedContainer::length() {
    const std::lock_guard guard(lock_);
    return length_now();
}

std::int64_t IndexedContainer::length_now() {
    if (directory_.is_log()) {
        if (!loaded_ && load() != 0) return -1;
        return std::max(known_.length(), fresh_end_);
    }
    const auto found = container::length(directory_);
    if (!found) return -1;
    // A group's file that has been shortened by something else does not end the logical file: reading there is an error.
    return loaded_ ? std::max(found.value(), known_.length()) : found.value();
}

int IndexedContainer::set_length(std::int64_t bytes) {
    const std::lock_guard guard(lock_);
    loaded_ = false;
    if (directory_.is_log()) {
        // A cut says how long the file is, whether it was longer or shorter: the indexes of all ranks need not be read, only what
        // others have last put into theirs.
        if (const int error = adopt_others(); error != 0) return error;
        if (const int error = append_all(false); error != 0) return error;  // before it
        return append({{clock_.next(), {{bytes, 0, cut_here, 0, 0, 1}}}}, false);
    }
    const std::int64_t there = length_now();
    if (there < 0) return EIO;
    const bool cuts = bytes < there;
    int error = append_all(false);
    // One that cuts nothing off is for those who have to know what may be left of earlier writers.
    if (error == 0 && (cuts || tracks_)) error = append({{clock_.next(), {{bytes, 0, cut_here, 0, 0, 1}}}}, false);
    if (error == 0) error = container::set_length(directory_, bytes, !cuts);
    loaded_ = false;
    return error;
}

Segment IndexedContainer::locate(std::int64_t offset) const {
    std::int64_t until = INT64_MAX;  // where something else begins
    auto own = own_.upper_bound(offset);
    if (own != own_.end()) until = own->first;
    if (own != own_.begin()) {
        const Segment& before = std::prev(own)->second;
        if (before.logical.end() > offset) {
            const std::int64_t skipped = offset - before.logical.offset;
            return {{offset, before.logical.length - skipped}, before.place + skipped, before.source};
        }
    }
    Segment known = known_.locate(offset);
    known.logical.length = std::min(known.logical.end(), until) - offset;
    return known;
}

std::int64_t IndexedContainer::attempt_write(int descriptor, const iovec* pieces, int count, std::int64_t offset) {
    const Extent part{offset, storage::total_bytes(pieces, count)};
    return attempt_write_scattered(descriptor, pieces, count, &part, 1);
}

/// Several parts in logs alone: elsewhere a byte's place is its offset.
std::int64_t IndexedContainer::attempt_write_scattered(int, const iovec* pieces, int count, const Extent* parts,
                                                       std::int64_t part_count) {
    std::shared_ptr<DataFile> data;
    std::int64_t place = parts[0].offset;
    const std::int64_t wanted = storage::total_bytes(pieces, count);
    bool on_target = false;
    {
        const std::lock_guard guard(lock_);
        if (writers_.empty()) return -EBADF;
        on_target = on_target_;
        for (std::int64_t i = 0; i < part_count; ++i) {
            if (parts[i].offset > INT64_MAX - directory_.data_begin() - parts[i].length) return -EFBIG;
        }
        if (const int error = make_room(); error != 0) return -error;
        if (waits_ && wanted <= largest_waiting_bytes) return keep_waiting(pieces, count, parts, wanted);
        data = data_;
        if (directory_.is_log()) {
            place = log_end_;
            log_end_ += wanted;
        }
    }
    const storage::Moment begin = on_target ? storage::now() : storage::Moment();
    const std::int64_t moved = below_.attempt_write(data->descriptor(), pieces, count, directory_.data_begin() + place);
    const std::int64_t took_ns = on_target ? storage::ns_between(begin, storage::now()) : 0;
    std::unique_lock guard(lock_);
    // What was not written leaves no hole, unless another thread has gone on meanwhile.
    if (directory_.is_log() && moved < wanted && log_end_ == place + wanted)
        log_end_ = place + std::max<std::int64_t>(0, moved);
    if (moved <= 0) return moved;
    std::int64_t recorded = 0;
    for (std::int64_t i = 0; recorded < moved; ++i) {
        const Extent written{parts[i].offset, std::min(parts[i].length, moved - recorded)};
        record(written, place + recorded);
        recorded += written.length;
    }
    // A target of the log's own may not stand idle while bytes for it lie in the page cache.
    if (!on_target_) return moved;
    if (watches_) {
        work_.bytes += moved;
        work_.ns += took_ns;
    }
    if (place + moved - sent_end_ < worth_sending_bytes) return moved;
    const Extent piece{sent_end_, place + moved - sent_end_};
    sent_end_ = place + moved;
    guard.unlock();
    if (!watches_) {
        below_.begin_flush(data->descriptor(), piece.length, piece.offset);
        return moved;
    }
    flushes_.begin(below_, data->descriptor(), piece);
    const storage::Flushes::Waited waited = flushes_.keep_near(below_, data->descriptor());
    work_.ns += waited.ns;
    return waited.error != 0 ? -waited.error : moved;
}

std::int64_t IndexedContainer::attempt_read(int, const iovec* pieces, int count, std::int64_t offset) {
    const std::int64_t wanted = storage::total_bytes(pieces, count);
    Segment segment;
    std::shared_ptr<DataFile> data;
    std::optional<LogAhead::Ask> more;
    std::int64_t end = 0;
    {
        const std::lock_guard guard(lock_);
        if (!loaded_) {
            if (const int error = load(); error != 0) return -error;
        }
        lay_unread_over();
        segment = locate(offset);
        if (segment.source == own_source_ && !waiting_bytes_.empty() &&
            segment.place + segment.logical.length > waiting_place_) {
            if (const int error = write_waiting(); error != 0) return -error;
        }
        const std::int64_t bytes = std::min(wanted, segment.logical.length);
        const bool kept = directory_.is_log() && segment.source >= 0;
        if (kept && ahead_.copy(segment.source, segment.place, bytes, pieces, count)) return bytes;
        if (segment.source < 0) {
            end = length_now();
        } else {
            // What waits is not in its file.
            const bool all_there = segment.source != own_source_ || waiting_bytes_.empty();
            if (kept) more = ahead_.ask(segment.source, segment.place, bytes, all_there ? INT64_MAX : waiting_place_);
            auto got = files_.get(segment.source);
            if (!got.file) {
                problem_ = got.why;
                return -got.error;
            }
            if (got.is_new) {
                const std::string why = why_not_data(directory_, got.file->descriptor(), segment.source);
                if (!why.empty()) {
                    problem_ = directory_.data(segment.source) + ": " + why;
                    files_.forget(segment.source);
                    return -EIO;
                }
            }
            data = std::move(got.file);
        }
    }
    if (segment.source < 0) {
        // A hole reads as zeros up to the end of the file.
        if (end < 0) return -EIO;
        const std::int64_t bytes = std::min({wanted, segment.logical.length, std::max<std::int64_t>(0, end - offset)});
        return Beginning(pieces, count, bytes).clear();
    }
    std::int64_t moved = 0;
    if (more) {
        iovec all{more->bytes.data(), more->bytes.size()};
        moved = below_.attempt_read(data->descriptor(), &all, 1, segment.place);
        more->bytes.resize(static_cast<std::size_t>(std::max<std::int64_t>(0, moved)));
        moved = std::min({moved, wanted, segment.logical.length});
        LogAhead::scatter(more->bytes.data(), moved, pieces, count);
        const std::lock_guard guard(lock_);
        ahead_.keep(std::move(*more));
    } else if (segment.logical.length >= wanted) {
        moved = below_.attempt_read(data->descriptor(), pieces, count, directory_.data_begin() + segment.place);
    } else {
        const Beginning part(pieces, count, segment.logical.length);
        moved = below_.attempt_read(data->descriptor(), part.pieces.data(), part.count,
                                    directory_.data_begin() + segment.place);
    }
    if (moved == 0 && wanted > 0) {
        const std::lock_guard guard(lock_);
        problem_ = directory_.data(segment.source) + " is shorter than its index says";
        return -EIO;
    }
    return moved;
}

int IndexedContainer::attempt_flush(int, std::int64_t bytes, std::int64_t offset) {
    std::shared_ptr<DataFile> data;
    std::int64_t log_end = 0;
    {
        const std::lock_guard guard(lock_);
        if (const int error = write_waiting(); error != 0) return -error;
        data = data_;
        log_end = log_end_;
    }
    if (!data) return -EBADF;
    // A log has no bytes at that offset; whatever waits in it goes.
    return directory_.is_log() ? below_.attempt_flush(data->descriptor(), log_end, 0)
                               : below_.attempt_flush(data->descriptor(), bytes, directory_.data_begin() + offset);
}

}  // namespace ioweir::container
