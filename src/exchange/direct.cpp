#include "exchange/direct.hpp"

#include <limits.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <optional>
#include <type_traits>
#include <vector>

#include "exchange/scratch.hpp"
#include "exchange/walk.hpp"

namespace ioweir::exchange {
namespace {

using layout::Extent;
using storage::Backend;
using storage::Transfer;

/// Collects memory that is adjacent in the file, or goes there in one operation all the same, and writes it in as few operations as is
/// worth while: short pieces are copied together, long ones go into the iovec as they are.
class Gatherer {
public:
    Gatherer(Backend& backend, int descriptor, const DirectTuning& tuning, Outcome& outcome)
        : backend_(backend),
          descriptor_(descriptor),
          tuning_(tuning),
          outcome_(outcome),
          scattered_(backend.takes_scattered()) {}

    /// What is added next lies there, and not behind what was added before. False after an error.
    bool begin(std::int64_t file_offset) {
        if (!scattered_ || before_.size() == most_parts) {
            if (!flush()) return false;
        } else if (count_ > 0) {
            end_part();
        }
        file_offset_ = file_offset;
        return true;
    }

    /// False after an error.
    bool add(std::byte* memory, std::int64_t bytes) {
        if (bytes < tuning_.copy_below_bytes) return copy(memory, bytes);
        if (count_ == IOV_MAX && !flush()) return false;
        append(memory, bytes);
        return true;
    }

    bool flush() {
        if (count_ == 0) return true;
        const std::int64_t end = file_offset_ + bytes_;
        const Transfer done = write();
        ++outcome_.operations;
        outcome_.bytes += done.bytes;
        outcome_.error = done.error;
        file_offset_ = end;
        count_ = 0;
        bytes_ = 0;
        copied_ = 0;
        return done.error == 0;
    }

private:
    Transfer write() {
        if (!before_.empty()) {
            end_part();
            const Transfer done = backend_.write_scattered_at(
                descriptor_, pieces_.data(), static_cast<std::int64_t>(count_), before_.data(), std::ssize(before_));
            before_.clear();
            return done;
        }
        return count_ == 1 ? backend_.write_at(descriptor_, pieces_[0].iov_base, bytes_, file_offset_)
                           : backend_.write_pieces_at(descriptor_, pieces_.data(), count_, file_offset_);
    }

    /// What is collected and not in before_ is a part of its own.
    void end_part() {
        if (bytes_ > 0) before_.push_back({file_offset_, bytes_});
        bytes_ = 0;
    }

    bool copy(const std::byte* memory, std::int64_t bytes) {
        if (!buffer_) buffer_.emplace(tuning_.buffer_bytes);
        std::byte* to = buffer_->data() + copied_;
        const bool extends =
            count_ > 0 && static_cast<std::byte*>(pieces_[count_ - 1].iov_base) + pieces_[count_ - 1].iov_len == to;
        if (copied_ + bytes > buffer_->size() || (!extends && count_ == IOV_MAX)) {
            if (!flush()) return false;
            return copy(memory, bytes);
        }
        copy_bytes(to, memory, bytes);
        copied_ += bytes;
        if (extends) {
            pieces_[count_ - 1].iov_len += static_cast<std::size_t>(bytes);
            bytes_ += bytes;
        } else {
            append(to, bytes);
        }
        return true;
    }

    void append(std::byte* memory, std::int64_t bytes) {
        pieces_[count_++] = {memory, static_cast<std::size_t>(bytes)};
        bytes_ += bytes;
    }

    Backend& backend_;
    int descriptor_;
    const DirectTuning& tuning_;
    static constexpr std::size_t most_parts = 8192;

    Outcome& outcome_;
    const bool scattered_;
    std::int64_t file_offset_ = 0;  // of the part that is being collected
    std::int64_t bytes_ = 0;        // of that part
    std::int64_t copied_ = 0;       // in buffer_
    std::size_t count_ = 0;
    std::vector<Extent> before_;  // parts in pieces_ before that one
    std::array<iovec, IOV_MAX> pieces_;
    std::optional<Scratch> buffer_;
};

/// One piece of memory and where it lies in the file. Trivial: a thousand of them must not be set to zero for each small read.
struct WantedPiece {
    std::byte* memory;
    std::int64_t offset;
    std::int64_t length;
    [[nodiscard]] std::int64_t end() const { return offset + length; }
};
static_assert(std::is_trivially_default_constructible_v<WantedPiece>);

/// Collects fragments with rising file offsets and reads them in one operation where that is worth while.
class Scatterer {
public:
    Scatterer(Backend& backend, int descriptor, const DirectTuning& tuning, Outcome& outcome)
        : backend_(backend), descriptor_(descriptor), tuning_(tuning), outcome_(outcome) {}

    /// False when the end of the file or an error was met: what follows has nothing to read.
    bool add(const WantedPiece& fragment) {
        if (count_ > 0 && !joins(fragment) && !flush()) return false;
        if (count_ > 0 && fragment.offset > end()) gapless_ = false;
        if (fragment.length >= tuning_.pick_below_bytes) ++long_ones_;
        longest_ = std::max(longest_, fragment.length);
        fragments_[count_++] = fragment;
        data_bytes_ += fragment.length;
        return true;
    }

    bool flush() {
        if (count_ == 0) return true;
        const std::int64_t begin = fragments_[0].offset;
        const std::int64_t span = end() - begin;
        // Mostly long pieces go straight to their places; mostly short ones are cheaper to copy out of a buffer.
        const bool straight = gapless_ && (span > tuning_.buffer_bytes || 2 * long_ones_ >= count_);
        Transfer done;
        if (count_ == 1) {
            done = backend_.read_at(descriptor_, fragments_[0].memory, span, begin);
        } else if (straight) {
            done = read_straight(begin);
        } else {
            done = read_and_pick(begin, span);
        }
        ++outcome_.operations;
        outcome_.error = done.error;
        outcome_.bytes += done.bytes == span ? data_bytes_ : data_within(begin + done.bytes);
        const bool whole = done.bytes == span;
        count_ = 0;
        data_bytes_ = 0;
        long_ones_ = 0;
        longest_ = 0;
        gapless_ = true;
        return whole && done.error == 0;
    }

private:
    [[nodiscard]] std::int64_t end() const { return fragments_[count_ - 1].end(); }

    [[nodiscard]] bool joins(const WantedPiece& fragment) const {
        if (count_ == most_fragments) return false;
        const std::int64_t hole = fragment.offset - end();
        if (hole > tuning_.longest_hole_bytes) return false;
        if (hole == 0 && gapless_ && (fragment.length >= tuning_.pick_below_bytes || long_ones_ > 0)) {
            return count_ < IOV_MAX;  // any length: an iovec needs no buffer
        }
        return hole + fragment.length <= tuning_.sieve_below_bytes && longest_ <= tuning_.sieve_below_bytes &&
               fragment.end() - fragments_[0].offset <= tuning_.buffer_bytes;
    }

    Transfer read_straight(std::int64_t begin) {
        for (std::size_t i = 0; i < count_; ++i) {
            pieces_[i] = {fragments_[i].memory, static_cast<std::size_t>(fragments_[i].length)};
        }
        return backend_.read_pieces_at(descriptor_, pieces_.data(), static_cast<std::int64_t>(count_), begin);
    }

    Transfer read_and_pick(std::int64_t begin, std::int64_t span) {
        if (!buffer_) buffer_.emplace(tuning_.buffer_bytes);
        const Transfer done = backend_.read_at(descriptor_, buffer_->data(), span, begin);
        for (std::size_t i = 0; i < count_; ++i) {
            const WantedPiece& fragment = fragments_[i];
            const std::int64_t there = std::min(fragment.length, begin + done.bytes - fragment.offset);
            if (there <= 0) break;
            copy_bytes(fragment.memory, buffer_->data() + (fragment.offset - begin), there);
        }
        return done;
    }

    /// Bytes of the fragments before a file offset.
    [[nodiscard]] std::int64_t data_within(std::int64_t file_end) const {
        std::int64_t bytes = 0;
        for (std::size_t i = 0; i < count_; ++i) {
            bytes += std::clamp<std::int64_t>(file_end - fragments_[i].offset, 0, fragments_[i].length);
        }
        return bytes;
    }

    static constexpr std::size_t most_fragments = DirectTuning::most_pieces;

    Backend& backend_;
    int descriptor_;
    const DirectTuning& tuning_;
    Outcome& outcome_;
    std::size_t count_ = 0;
    std::size_t long_ones_ = 0;
    std::int64_t longest_ = 0;
    std::int64_t data_bytes_ = 0;
    bool gapless_ = true;
    std::array<WantedPiece, most_fragments> fragments_;
    std::array<iovec, IOV_MAX> pieces_;
    std::optional<Scratch> buffer_;
};

}  // namespace

Outcome write_direct(Backend& backend, int descriptor, const Memory& memory, const FileRange& range,
                     const DirectTuning& tuning) {
    Outcome outcome;
    Gatherer gatherer(backend, descriptor, tuning, outcome);
    StretchCursor stretches(memory, range, 0, memory.bytes);
    Stretch stretch;
    for (std::int64_t end = -1; stretches.next(stretch); end = stretch.file.end()) {
        if (stretch.file.offset != end && !gatherer.begin(stretch.file.offset)) return outcome;
        if (!gatherer.add(stretch.memory, stretch.file.length)) return outcome;
    }
    gatherer.flush();
    return outcome;
}

Outcome read_direct(Backend& backend, int descriptor, const Memory& memory, const FileRange& range,
                    const DirectTuning& tuning) {
    Outcome outcome;
    Scatterer scatterer(backend, descriptor, tuning, outcome);
    StretchCursor stretches(memory, range, 0, memory.bytes);
    Stretch stretch;
    while (stretches.next(stretch)) {
        if (!scatterer.add({stretch.memory, stretch.file.offset, stretch.file.length})) return outcome;
    }
    scatterer.flush();
    return outcome;
}

}  // namespace ioweir::exchange
