// Events: what happens next on a simulated machine, and the simulated clock. Deterministic: by time, then in the order in which they were
// asked for.
// What does not live here: the models (fabric.hpp, targets.hpp, ...), what is simulated (simulation.hpp).
#pragma once

#include <algorithm>
#include <cassert>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "sim/stop_sign.hpp"

namespace ioweir::sim {

/// Simulated seconds since the start.
using Seconds = double;

/// What events happen to. `what` is the owner's own word for it, `which` the number of a thing of its own.
class Actor {
public:
    virtual ~Actor() = default;
    virtual void happen(std::uint32_t what, std::uint32_t which) = 0;
};

/// Whom to call, with which words.
struct Callback {
    Actor* actor = nullptr;
    std::uint32_t what = 0;
    std::uint32_t which = 0;
    void operator()() const {
        if (actor != nullptr) actor->happen(what, which);
    }
};

class Events {
public:
    /// `stop`: none, or it lives as long.
    explicit Events(StopSign* stop = nullptr) : stop_(stop) {}

    [[nodiscard]] Seconds now() const { return now_; }
    [[nodiscard]] std::uint64_t happened() const { return happened_; }

    /// Not before now.
    void at(Seconds time, Callback callback) {
        assert(time >= now_);
        heap_.push_back({time, next_++, callback});
        rise(heap_.size() - 1);
    }
    void after(Seconds delay, Callback callback) { at(now_ + delay, callback); }

    /// Before a piece of work that is no event. Throws Stopped.
    void pass() {
        if (stop_ != nullptr) stop_->pass();
    }
    /// Lets events happen until `done` or none is left; false: none was left. Throws Stopped.
    bool run_until(const bool& done) {
        while (!done && !heap_.empty()) {
            pass();
            const Event first = heap_.front();
            take_first();
            now_ = first.time;
            ++happened_;
            first.callback();
        }
        return done;
    }

private:
    struct Event {
        Seconds time = 0;
        std::uint64_t order = 0;
        Callback callback;
        [[nodiscard]] bool before(const Event& other) const {
            return time < other.time || (time == other.time && order < other.order);
        }
    };
    /// Children of an entry of the heap: four lie closer together in memory, and the heap is half as high as with two.
    static constexpr std::size_t children = 4;

    void rise(std::size_t at) {
        const Event event = heap_[at];
        while (at > 0 && event.before(heap_[(at - 1) / children])) {
            heap_[at] = heap_[(at - 1) / children];
            at = (at - 1) / children;
        }
        heap_[at] = event;
    }
    void take_first() {
        const Event last = heap_.back();
        heap_.pop_back();
        if (heap_.empty()) return;
        std::size_t at = 0;
        while (true) {
            const std::size_t first = at * children + 1;
            if (first >= heap_.size()) break;
            std::size_t least = first;
            for (std::size_t i = first + 1; i < std::min(first + children, heap_.size()); ++i)
                if (heap_[i].before(heap_[least])) least = i;
            if (!heap_[least].before(last)) break;
            heap_[at] = heap_[least];
            at = least;
        }
        heap_[at] = last;
    }

    StopSign* stop_;
    std::vector<Event> heap_;
    Seconds now_ = 0;
    std::uint64_t next_ = 0;
    std::uint64_t happened_ = 0;
};

/// One thing after the other, in the order in which it is asked for.
class Line {
public:
    /// When it is over, if it is asked for now.
    Seconds serve(Seconds now, Seconds duration) {
        free_at_ = std::max(now, free_at_) + duration;
        return free_at_;
    }
    [[nodiscard]] Seconds free_at() const { return free_at_; }

private:
    Seconds free_at_ = 0;
};

/// Things with numbers that are used again.
template <typename T>
class Pool {
public:
    std::uint32_t add(T value) {
        if (free_.empty()) {
            things_.push_back(std::move(value));
            return static_cast<std::uint32_t>(things_.size() - 1);
        }
        const std::uint32_t number = free_.back();
        free_.pop_back();
        things_[number] = std::move(value);
        return number;
    }
    void remove(std::uint32_t number) { free_.push_back(number); }
    T& operator[](std::uint32_t number) { return things_[number]; }

private:
    std::vector<T> things_;
    std::vector<std::uint32_t> free_;
};

}  // namespace ioweir::sim
