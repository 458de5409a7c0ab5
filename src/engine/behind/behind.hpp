// What a handle needs for write-behind. What it does: behind.cpp.
#pragma once

#include <memory>

#include "engine/behind/write_behind_queue.hpp"
#include "engine/calls/together.hpp"
#include "engine/files/process_groups.hpp"

namespace ioweir::engine {

struct Behind {
    std::shared_ptr<ProcessGroup> ranks;
    std::shared_ptr<Team> team;  ///< theirs
    std::shared_ptr<WriteBehindQueue> queue;
};

}  // namespace ioweir::engine
