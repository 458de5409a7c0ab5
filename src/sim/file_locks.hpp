// FileLocks: a node's lock of each file, which a process holds while it writes (Linux: inode_lock() in ext4_buffered_write_iter() and
// shmem_file_write_iter()): processes write into one file one after the other, in the order in which they came.
// Limits: handing it over costs nothing; a process that waits sleeps, where Linux lets it spin as long as the holder runs and nobody else wants
// the processor.
// What does not live here: locks between nodes (locks.hpp).
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <utility>

#include "sim/events.hpp"

namespace ioweir::sim {

class FileLocks {
public:
    void enter(int node, std::int64_t file, Callback granted) {
        Lock& lock = locks_[{node, file}];
        if (lock.held) return lock.waiting.push_back(granted);
        lock.held = true;
        granted();
    }
    void leave(int node, std::int64_t file) {
        Lock& lock = locks_[{node, file}];
        if (lock.waiting.empty()) {
            lock.held = false;
            return;
        }
        const Callback next = lock.waiting.front();
        lock.waiting.pop_front();
        next();
    }

private:
    struct Lock {
        bool held = false;
        std::deque<Callback> waiting;
    };
    std::map<std::pair<int, std::int64_t>, Lock> locks_;
};

}  // namespace ioweir::sim
