#include "container/container.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <optional>
#include <utility>

namespace ioweir::container {
namespace {

using layout::Extent;

constexpr std::size_t first_room = 4096;
/// Records of 24 bytes that are kept in memory at most: 24 MiB.
constexpr std::size_t most_room = std::size_t{1} << 20;

/// The first `bytes` of some pieces, or fewer where there are very many: callers complete short transfers.
struct Beginning {
    std::array<iovec, 64> pieces{};
    int count = 0;

    Beginning(const iovec* all, int all_count, std::int64_t bytes) {
        for (int i = 0; i < all_count && bytes > 0 && count < static_cast<int>(pieces.size()); ++i) {
            iovec& piece = pieces[static_cast<std::size_t>(count++)];
            piece = all[i];
            piece.iov_len = std::min(piece.iov_len, static_cast<std::size_t>(bytes));
            bytes -= static_cast<std::int64_t>(piece.iov_len);
        }
    }
    std::int64_t clear() const {
        std::int64_t cleared = 0;
        for (int i = 0; i < count; ++i) {
            const iovec& piece = pieces[static_cast<std::size_t>(i)];
            std::memset(piece.iov_base, 0, piece.iov_len);
            cleared += static_cast<std::int64_t>(piece.iov_len);
        }
        return cleared;
    }
};

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

Container::Container(storage::Backend& below, Directory directory, Role role)
    : below_(below),
      directory_(std::move(directory)),
      role_(role),
      data_(static_cast<std::size_t>(directory_.groups), -1),
      room_(first_room) {}

Container::~Container() {
    for (const int descriptor : data_) {
        if (descriptor >= 0) below_.close(descriptor);
    }
    if (index_ >= 0) below_.close(index_);
}

Result<std::unique_ptr<Container>> Container::open(storage::Backend& below, Directory directory, Role role) {
    std::unique_ptr<Container> made(new Container(below, std::move(directory), role));
    // Now rather than at the first read or write: an error of MPI_File_open is one that programs expect.
    if (role.writes) {
        if (const int data = made->data_of(role.group); data < 0) {
            return Error{"a part of an ioweir container cannot be opened",
                         made->directory_.data(role.group) + ": " + std::strerror(-data),
                         "the directory belongs beside the file of which it holds the bytes"};
        }
    }
    if (role.reads) {
        const std::lock_guard guard(made->lock_);
        if (made->load() != 0) return Error{made->problem_, "", ""};
    }
    return made;
}

int Container::data_of(std::int32_t group) {
    int& known = data_[static_cast<std::size_t>(group)];
    if (known >= 0) return known;
    const std::string path = directory_.data(group);
    const bool own = role_.writes && group == role_.group;
    storage::Opened opened = below_.open(path.c_str(), own ? O_RDWR : O_RDONLY);
    if (opened.descriptor < 0 && opened.error == EACCES && own) opened = below_.open(path.c_str(), O_WRONLY);
    if (opened.descriptor < 0) return -opened.error;
    return known = opened.descriptor;
}

int Container::load() {
    known_.clear();
    auto indexes = read_indexes(directory_);
    if (!indexes) {
        problem_ = indexes.error().message();
        return EIO;
    }
    known_ = replay(std::move(indexes.value().batches));
    loaded_ = true;
    return 0;
}

std::string Container::problem() const {
    const std::lock_guard guard(lock_);
    return problem_;
}

void Container::record(Extent written) {
    const Segment segment{written, written.offset, role_.group};
    if (!fresh_.empty() && fresh_.back().logical.end() == written.offset) {
        fresh_.back().logical.length += written.length;
    } else {
        fresh_.push_back(segment);
    }
    if (role_.reads) lay_over(own_, segment);
}

int Container::make_room() {
    if (fresh_.size() < room_) return 0;
    fresh_ = overlay(fresh_);
    if (fresh_.size() <= most_room) {
        room_ = std::max(first_room, 2 * fresh_.size());
        return 0;
    }
    Batch batch{now(), role_.group, {}};
    for (const Segment& segment : fresh_) batch.records.push_back({segment.logical, segment.place});
    const int error = append(batch, false);
    if (error == 0) {
        fresh_.clear();
        room_ = first_room;
    }
    return error;
}

int Container::append(const Batch& batch, bool durable) {
    if (index_ < 0) {
        Time first = batch.time;
        const storage::Opened opened =
            below_.open(directory_.index(role_.group, first).c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0666);
        if (opened.descriptor < 0) return opened.error;
        index_ = opened.descriptor;
    }
    const std::string bytes = encode(batch);
    // At a known place: what a failed attempt has left is written over by the next one.
    const storage::Transfer done = below_.write_at(index_, bytes.data(), std::ssize(bytes), index_bytes_);
    if (done.error != 0) return done.error;
    index_bytes_ += done.bytes;
    return durable && ::fdatasync(index_) != 0 ? errno : 0;
}

int Container::flush(bool durable) {
    const std::lock_guard guard(lock_);
    loaded_ = false;
    int error = 0;
    if (role_.writes) {
        const int data = data_[static_cast<std::size_t>(role_.group)];
        if (durable && data >= 0 && ::fdatasync(data) != 0) error = errno;
        if (error == 0 && !fresh_.empty()) {
            Batch batch{now(), role_.group, {}};
            for (const Segment& segment : overlay(fresh_)) batch.records.push_back({segment.logical, segment.place});
            error = append(batch, durable);
        }
        if (error == 0) {
            fresh_.clear();
            room_ = first_room;
            own_.clear();
        }
    }
    ++epoch_;
    return error;
}

std::int64_t Container::length() const {
    const auto found = container::length(directory_);
    return found ? found.value() : -1;
}

int Container::set_length(std::int64_t bytes, bool records) {
    const std::lock_guard guard(lock_);
    int error = 0;
    if (records) {
        const auto there = container::length(directory_);
        if (!there) return EIO;
        if (bytes < there.value()) {
            error = append({now(), role_.group, {{{bytes, 0}, cut_here}}}, false);
            if (error == 0) error = container::set_length(directory_, bytes, false);
        } else {
            error = container::set_length(directory_, bytes, true);
        }
    }
    loaded_ = false;
    ++epoch_;
    return error;
}

Segment Container::locate(std::int64_t offset) const {
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
    const auto known = find(known_, offset);
    if (known == known_.end()) return {{offset, until - offset}, 0, -1};
    if (known->logical.offset > offset) return {{offset, std::min(until, known->logical.offset) - offset}, 0, -1};
    const std::int64_t skipped = offset - known->logical.offset;
    return {{offset, std::min(until, known->logical.end()) - offset}, known->place + skipped, known->source};
}

storage::Opened Container::attempt_open(const char*, int, mode_t) { return {-1, ENOTSUP}; }
int Container::attempt_close(int) { return ENOTSUP; }
int Container::attempt_allocate(int, int, std::int64_t, std::int64_t) { return -EOPNOTSUPP; }

std::int64_t Container::attempt_write(int, const iovec* pieces, int count, std::int64_t offset) {
    int data = 0;
    {
        const std::lock_guard guard(lock_);
        if (!role_.writes) return -EBADF;
        if (const int error = make_room(); error != 0) return -error;
        data = data_of(role_.group);
    }
    if (data < 0) return data;
    const std::int64_t moved = below_.attempt_write(data, pieces, count, offset);
    if (moved > 0) {
        const std::lock_guard guard(lock_);
        record({offset, moved});
    }
    return moved;
}

std::int64_t Container::attempt_read(int, const iovec* pieces, int count, std::int64_t offset) {
    Segment segment;
    int data = -1;
    {
        const std::lock_guard guard(lock_);
        if (!loaded_) {
            if (const int error = load(); error != 0) return -error;
        }
        segment = locate(offset);
        if (segment.source >= 0) {
            data = data_of(segment.source);
            if (data < 0) {
                problem_ = directory_.data(segment.source) + ": " + std::strerror(-data);
                return data;
            }
        }
    }
    const std::int64_t wanted = storage::total_bytes(pieces, count);
    if (segment.source < 0) {
        // A hole reads as zeros up to the end of the file.
        const std::int64_t end = length();
        if (end < 0) return -EIO;
        const std::int64_t bytes = std::min({wanted, segment.logical.length, std::max<std::int64_t>(0, end - offset)});
        return Beginning(pieces, count, bytes).clear();
    }
    std::int64_t moved = 0;
    if (segment.logical.length >= wanted) {
        moved = below_.attempt_read(data, pieces, count, segment.place);
    } else {
        const Beginning part(pieces, count, segment.logical.length);
        moved = below_.attempt_read(data, part.pieces.data(), part.count, segment.place);
    }
    if (moved == 0 && wanted > 0) {
        const std::lock_guard guard(lock_);
        problem_ = directory_.data(segment.source) + " is shorter than its index says";
        return -EIO;
    }
    return moved;
}

int Container::attempt_flush(int, std::int64_t bytes, std::int64_t offset) {
    int data = 0;
    {
        const std::lock_guard guard(lock_);
        data = data_of(role_.group);
    }
    return data < 0 ? data : below_.attempt_flush(data, bytes, offset);
}

}  // namespace ioweir::container
