// What workers and delegates tell each other (rbIO: Liu et al., section 2.2). All ranks are of one job on one kind of machine.
#pragma once

#include <cstdint>

namespace ioweir::partition {

/// The tag of a message, too. Those of one worker for one set are taken in any order; `end` says how many there are.
enum class Message : std::int32_t {
    begin = 1,   ///< a set: text (SetText)
    block = 2,   ///< a block: its header and items
    more = 3,    ///< further bytes of the last block
    end = 4,     ///< no more of this set; `number`: how many blocks there were
    leave = 5,   ///< the worker has no more sets
    result = 6,  ///< of a set, from the delegate: text (Failure), empty: it is there
    first = 7,   ///< the first bytes of a block, which more follow
};

struct Wire {
    Message kind = Message::begin;
    std::int32_t code = 0;  ///< result: of the failure
    std::int64_t set = 0;   ///< from 0, in the order in which they were begun
    std::int64_t field = 0;
    std::int64_t part = 0;    ///< from 0, of the worker
    std::int64_t bytes = 0;   ///< behind this, in this message
    std::int64_t number = 0;  ///< block, first: of all its bytes; more: where these begin; end: of blocks
};

}  // namespace ioweir::partition
