// What a process and others know of each other's writes: stamps that it has learned, and who is told of its own.
// What does not live here: everything else that a container with an index does (indexed.cpp).
#include <cerrno>
#include <cstdint>
#include <mutex>
#include <vector>

#include "container/indexed.hpp"

namespace ioweir::container {

void IndexedContainer::adopt(Stamp known) {
    const std::lock_guard guard(lock_);
    learn(known);
    seal();
    loaded_ = false;
}

int IndexedContainer::look_around() {
    const std::lock_guard guard(lock_);
    return adopt_others();
}

int IndexedContainer::adopt_others() {
    std::vector<std::uint32_t> own;
    for (const Writer& writer : writers_) own.push_back(writer.generation);
    seal();
    const auto largest = largest_stamp(directory_, own);
    if (!largest) return EIO;
    learn(largest.value());
    return 0;
}

void IndexedContainer::add_watcher(IndexWatcher& watcher) {
    const std::lock_guard guard(lock_);
    watchers_.push_back(&watcher);
    if (!sealed_.empty() || !fresh_.empty()) watcher.written();
}

void IndexedContainer::remove_watcher(IndexWatcher& watcher) {
    const std::lock_guard guard(lock_);
    std::erase(watchers_, &watcher);
}

void IndexedContainer::learn(Stamp last) {
    clock_.adopt(last);
    for (IndexWatcher* const watcher : watchers_) watcher->learned(last);
}

}  // namespace ioweir::container
