// The end of a log on a target of its own, on its way there: sent on piece by piece, so that the target does not stand idle while bytes for
// it lie in the page cache. Where somebody watches how fast the target is, a writer gets only so far ahead of it.
// What does not live here: the log (indexed.hpp).
#pragma once

#include <cstdint>
#include <deque>

#include "container/container.hpp"
#include "container/target_time.hpp"
#include "layout/core/extent.hpp"

namespace ioweir::container {

/// For one thread at a time, once watch() was called; before that, send() may be called by any.
class SentPieces {
public:
    explicit SentPieces(storage::Backend& below) : below_(below) {}

    void watch() { watches_ = true; }
    [[nodiscard]] bool watches() const { return watches_; }
    /// Sends these bytes of a file on. Where it is watched, waits until what is on its way is 200 ms of the target's time, or between 2 and
    /// 64 MiB. An errno value: of the target, for whichever bytes.
    int send(int descriptor, layout::Extent piece);
    /// A write of so many bytes took so long.
    void add_write(std::int64_t bytes, std::int64_t ns);
    /// All that was sent was waited for, in this time.
    void add_sync(std::int64_t ns);
    /// Another file follows: what is on its way is nobody's to wait for but a sync's.
    void leave();
    /// What was written since the last time, and how long the target took.
    [[nodiscard]] Container::Work take();

private:
    struct Piece {
        layout::Extent bytes;
        TargetTime::Moment begun;
    };
    [[nodiscard]] std::int64_t most_on_their_way() const;

    storage::Backend& below_;
    bool watches_ = false;
    std::deque<Piece> sent_;
    std::int64_t on_their_way_ = 0;
    TargetTime time_;
    Container::Work work_;
};

}  // namespace ioweir::container
