#include "analysis/nesting.hpp"

#include <algorithm>
#include <utility>

namespace ioweir::analysis {
namespace {

constexpr std::size_t family_kept = 4096;  ///< events whose memory is kept for the next family

}  // namespace

NestedCursor::NestedCursor(format::ThreadCursor events, const std::vector<FunctionKind>& kinds, std::uint8_t mpi_layer)
    : events_(std::move(events)), kinds_(&kinds), mpi_layer_(mpi_layer) {}

const NestedEvent* NestedCursor::next() {
    if (at_ == family_.size()) fill();
    return at_ == family_.size() ? nullptr : &family_[at_++];
}

/// An event without a parent ends a family: when it returned, no call was going on, so whatever came before it either
/// belongs to it or to a call that never returned.
void NestedCursor::fill() {
    if (family_.capacity() > family_kept) family_ = {};
    family_.clear();
    at_ = 0;
    format::Event event;
    while (events_.next(event)) {
        family_.push_back(NestedEvent{event});
        if (event.parent == 0) break;
    }
    if (family_.size() > 1) settle();
}

void NestedCursor::settle() {
    const auto by_entry = [](const NestedEvent& a, const NestedEvent& b) {
        return a.event.sequence < b.event.sequence;
    };
    std::stable_sort(family_.begin(), family_.end(), by_entry);
    for (auto child = family_.begin(); child != family_.end(); ++child) {
        const std::uint32_t wanted = child->event.parent;
        if (wanted == 0 || wanted >= child->event.sequence) continue;  // the latter is damage
        const auto parent = std::lower_bound(
            family_.begin(), child, wanted, [](const NestedEvent& e, std::uint32_t s) { return e.event.sequence < s; });
        if (parent == child || parent->event.sequence != wanted) continue;  // it never returned
        const std::uint8_t layer = (*kinds_)[parent->event.function].layer;
        child->layers_around = parent->layers_around | (1U << layer);
        child->outer_function = parent->outer_function != 0 ? parent->outer_function : parent->event.function;
        child->mpi_function = parent->mpi_function;
        child->mpi_path = parent->mpi_path;
        child->mpi_end_ns = parent->mpi_end_ns;
        child->mpi_failed = parent->mpi_failed;
        child->mpi_less = parent->mpi_less;
        if (child->mpi_function == 0 && layer == mpi_layer_) {
            child->mpi_function = parent->event.function;
            child->mpi_path = parent->event.path;
            child->mpi_end_ns =
                format::codec::sum(parent->event.start_ns, std::max<std::int64_t>(parent->event.duration_ns, 0));
            child->mpi_failed = parent->event.failed;
            child->mpi_less = parent->event.missing != 0;
        }
    }
}

MergedEvents::MergedEvents(const format::TraceFiles& files, const std::vector<FunctionKind>& kinds,
                           std::uint8_t mpi_layer) {
    for (std::uint32_t thread = 0; thread < files.threads().size(); ++thread)
        if (files.threads()[thread].events != 0) cursors_.emplace_back(files.cursor(thread), kinds, mpi_layer);
}

const NestedEvent* MergedEvents::next() {
    if (!begun_) {
        begun_ = true;
        current_.resize(cursors_.size());
        for (std::uint32_t i = 0; i < cursors_.size(); ++i)
            if ((current_[i] = cursors_[i].next()) != nullptr) heap_.push_back(Head{current_[i]->event.start_ns, i});
        for (std::size_t i = heap_.size() / 2; i-- > 0;) sink(i);
    } else if (!heap_.empty()) {
        // The event given out last is at the top still.
        const std::uint32_t cursor = heap_[0].cursor;
        const NestedEvent* following = cursors_[cursor].next();
        current_[cursor] = following;
        if (following != nullptr) {
            // Threads move between processors whose counters may differ a little: a thread's time never goes back here.
            heap_[0].start_ns = std::max(heap_[0].start_ns, following->event.start_ns);
        } else {
            heap_[0] = heap_.back();
            heap_.pop_back();
        }
        if (!heap_.empty()) sink(0);
    }
    return heap_.empty() ? nullptr : current_[heap_[0].cursor];
}

void MergedEvents::sink(std::size_t at) {
    const Head head = heap_[at];
    for (;;) {
        std::size_t child = 2 * at + 1;
        if (child >= heap_.size()) break;
        if (child + 1 < heap_.size() && heap_[child + 1] < heap_[child]) ++child;
        if (!(heap_[child] < head)) break;
        heap_[at] = heap_[child];
        at = child;
    }
    heap_[at] = head;
}

}  // namespace ioweir::analysis
