#include "analysis/gathered_calls.hpp"

#include <algorithm>
#include <numeric>

#include "analysis/near.hpp"

namespace ioweir::analysis {

namespace codec = format::codec;

namespace {

constexpr std::uint8_t origin_tracer = 3;

bool starts_before(const GatheredCall& a, const GatheredCall& b) { return a.start < b.start; }

}  // namespace

GatheredCalls::GatheredCalls(const format::TraceFiles& files, const CallQuestion& question,
                             const std::vector<FunctionKind>& kinds, const Stretches& stretches, std::uint64_t most)
    : files_(files),
      question_(question),
      kinds_(kinds),
      stretches_(stretches),
      most_(most),
      mpi_(Vocabulary::position(question.names.layers, question.mpi_layer)),
      wait_(Vocabulary::position(question.names.layers, question.wait_layer)),
      made_(stretches.whole() ? 0 : question.runtime_file.size(), 0) {}

void GatheredCalls::gather(const std::vector<std::uint32_t>& threads) {
    calls_.clear();
    waits_.clear();
    collectives_.clear();
    if (stretches_.whole()) {
        std::uint64_t events = 0;
        for (const std::uint32_t thread : threads) events += files_.threads()[thread].events;
        calls_.reserve(events);
    }
    for (const std::uint32_t thread : threads) gather_thread(thread);
    if (!stretches_.whole()) number_collectives();
    // Of equal starts the order is that of the trace, in which calls stand by their ends.
    sort_nearly(waits_, starts_before);
    sort_nearly(calls_, starts_before);
}

void GatheredCalls::gather_thread(std::uint32_t thread) {
    format::ThreadCursor cursor = files_.cursor(thread);
    if (stretches_.whole()) {
        for (format::Event event; cursor.next(event);) {
            if (!counts(event)) continue;
            const bool waits = kinds_[event.function].layer == wait_;
            (waits ? waits_ : calls_).push_back(call_of(event));
        }
        return;
    }
    for (format::Event event; cursor.next(event);) {
        if (counts(event)) {
            if (event.parent == 0 && kinds_[event.function].layer != wait_)
                all_ns_ = codec::sum(all_ns_, std::max<std::int64_t>(event.duration_ns, 0));
            if (undecided_.size() < most_)
                undecided_.push_back(call_of(event));
            else
                left_out_ = true;
        }
        if (event.parent == 0) decide(event.start_ns);
    }
    // The program was killed in the call around those that are left.
    find_collectives();
    for (const GatheredCall& call : undecided_) add(call, stretches_.of(call.start, stretch_));
    undecided_.clear();
}

bool GatheredCalls::counts(const format::Event& event) const {
    const FunctionKind& kind = kinds_[event.function];
    if (question_.runtime_file[question_.file_of_path[event.path]] != 0) return false;
    if (event.origin == origin_tracer || kind.late) return false;
    return kind.layer != wait_ || event.parent == 0;
}

GatheredCall GatheredCalls::call_of(const format::Event& event) const {
    return GatheredCall{event.start_ns,
                        std::max<std::int64_t>(event.duration_ns, 0),
                        event.offset,
                        event.bytes,
                        -1,
                        event.thread,
                        event.sequence,
                        event.parent,
                        question_.file_of_path[event.path],
                        event.access,
                        event.function,
                        event.origin,
                        event.failed};
}

/// Of the calls in an outermost call that began then, itself included.
void GatheredCalls::decide(std::int64_t root_start) {
    find_collectives();
    const std::int64_t stretch = stretches_.of(root_start, stretch_);
    for (const GatheredCall& call : undecided_) add(call, stretch);
    undecided_.clear();
}

void GatheredCalls::add(GatheredCall call, std::int64_t stretch) {
    if (stretch < 0) return;
    if (gathered_ >= most_) {
        left_out_ = true;
        return;
    }
    ++gathered_;
    call.start = codec::difference(call.start, stretches_.skipped_before(stretch));
    const bool waits = kinds_[call.function].layer == wait_;
    if (call.parent == 0 && !waits) gathered_ns_ = codec::sum(gathered_ns_, call.duration);
    (waits ? waits_ : calls_).push_back(call);
}

/// Among the undecided calls. Those around a call stand behind it.
void GatheredCalls::find_collectives() {
    struct Around {
        std::uint32_t sequence;
        bool in_mpi;
    };
    std::vector<Around> around;
    for (std::size_t at = undecided_.size(); at-- > 0;) {
        GatheredCall& call = undecided_[at];
        const FunctionKind& kind = kinds_[call.function];
        while (!around.empty() && around.back().sequence != call.parent) around.pop_back();
        const bool in_mpi = !around.empty() && around.back().in_mpi;
        around.push_back({call.sequence, in_mpi || kind.layer == mpi_});
        if (!kind.collective || kind.layer != mpi_ || kind.completes || in_mpi) continue;
        call.collective_number = static_cast<std::int64_t>(collectives_.size());
        collectives_.push_back({call.start, call.file, -1});
    }
}

/// Of each collective call of the unit: the how many-th on its file it is, those included that are not gathered.
void GatheredCalls::number_collectives() {
    std::vector<std::size_t> order(collectives_.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    sort_nearly(order, [&](std::size_t a, std::size_t b) { return collectives_[a].start < collectives_[b].start; });
    for (const std::size_t at : order) collectives_[at].number = made_[collectives_[at].file]++;
    for (const Collective& one : collectives_) made_[one.file] = 0;
    for (GatheredCall& call : calls_)
        if (call.collective_number >= 0) call.collective_number = collectives_[index(call.collective_number)].number;
}

}  // namespace ioweir::analysis
