#include "adapters/pnetcdf/pending.hpp"

#include <algorithm>
#include <utility>

namespace ioweir::pnetcdf {

void PendingList::count(const Pending& pending, int by) {
    count_ += by;
    if (pending.access.writes()) puts_ += by;
    buffered_ += by * pending.buffered;
}

void PendingList::add(std::unique_ptr<Pending> pending) {
    count(*pending, 1);
    ids_.push_back(pending->id);
    list_.push_back(std::move(pending));
    ++next_;
}

std::unique_ptr<Pending> PendingList::out(std::unique_ptr<Pending>& pending) {
    count(*pending, -1);
    return std::move(pending);
}

void PendingList::tidy() {
    constexpr std::size_t few = 64;
    if (count_ == 0) {
        list_.clear();
        ids_.clear();
        next_ = 0;
        return;
    }
    if (list_.size() < few || list_.size() < 2 * static_cast<std::size_t>(count_)) return;
    std::erase(list_, nullptr);
    ids_.clear();
    for (const auto& pending : list_) ids_.push_back(pending->id);
}

std::unique_ptr<Pending> PendingList::take(int id) {
    const auto found = std::lower_bound(ids_.begin(), ids_.end(), id);
    if (found == ids_.end() || *found != id) return nullptr;
    auto& place = list_[static_cast<std::size_t>(found - ids_.begin())];
    if (!place) return nullptr;
    std::unique_ptr<Pending> pending = out(place);
    tidy();
    return pending;
}

void PendingList::give_back(Chosen taken) {
    int next = next_;
    for (auto& pending : taken) {
        count(*pending, 1);
        next = std::max(next, pending->id - first_id + 1);
        list_.push_back(std::move(pending));
    }
    next_ = next;
    std::erase(list_, nullptr);
    std::sort(list_.begin(), list_.end(), [](const auto& a, const auto& b) { return a->id < b->id; });
    ids_.clear();
    for (const auto& pending : list_) ids_.push_back(pending->id);
}

}  // namespace ioweir::pnetcdf
