// Where the subfiles of a new file go (probing.hpp): finds the targets at its path, has them probed or takes what was kept, chooses.
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <iterator>
#include <mutex>
#include <optional>
#include <utility>

#include "base/checksum.hpp"
#include "base/size_text.hpp"
#include "engine/files/probing.hpp"
#include "engine/parts.hpp"
#include "probe/cache.hpp"
#include "storage/directory_targets.hpp"

namespace ioweir::engine {
namespace {

using probe::Measured;
using storage::Targets;

probe::Options options_of(const policy::ProbeOptions& wish) {
    constexpr std::int64_t millisecond_ns = 1'000'000;
    probe::Options options;
    if (wish.discard_ms) options.discard_ns = *wish.discard_ms * millisecond_ns;
    if (wish.window_ms) options.window_ns = *wish.window_ms * millisecond_ns;
    if (wish.size_bytes) options.bytes = *wish.size_bytes;
    return options;
}

/// The plan's directories where it names some, else what the path's storage has.
Result<std::unique_ptr<Targets>> targets_for(const std::string& path, const policy::FileRule& rule) {
    if (rule.targets.empty()) return storage::find_targets(path);
    storage::Manifest manifest;
    for (const std::string& directory : rule.targets) {
        storage::ManifestTarget target;
        target.name = target.directory = directory;
        manifest.targets.push_back(std::move(target));
    }
    return storage::DirectoryTargets::open("", manifest);
}

/// Ranks that see other targets than rank 0 must not mix up their numbers.
std::int64_t fingerprint(const Targets& targets) {
    std::string text = targets.kind();
    for (const storage::Target& target : targets.list()) text += "\n" + target.name + "\t" + target.directory;
    return static_cast<std::int64_t>(checksum(text.data(), text.size()));
}

std::int64_t seconds_since_1970() { return static_cast<std::int64_t>(std::time(nullptr)); }

/// What rank 0 knows before anything is probed.
struct Prepared {
    std::unique_ptr<Targets> targets;
    std::string why_not;
    std::string cache;  ///< the file to keep it in; empty: not to be kept
    std::optional<probe::Kept> kept;
};

Prepared look_for_targets(const std::string& path, const policy::FileRule& rule, const probe::Options& options) {
    Prepared prepared;
    auto found = targets_for(path, rule);
    if (!found) {
        prepared.why_not = found.error().message();
        return prepared;
    }
    prepared.targets = found.take();
    if (rule.probe.cache_s == 0) return prepared;
    prepared.cache = probe::cache_file(*prepared.targets, options);
    if (!prepared.cache.empty())
        prepared.kept = probe::read_cache(prepared.cache, prepared.targets->list().size(), seconds_since_1970(),
                                          rule.probe.cache_s);
    return prepared;
}

/// This rank's part of probing: its own view of the targets, opened when it is the first to need it.
class OwnTargets {
public:
    OwnTargets(const Handle& handle, const policy::FileRule& rule, std::int64_t fingerprint_of_first)
        : handle_(handle), rule_(rule), expected_(fingerprint_of_first) {}

    Measured measure(std::int32_t target, const probe::Options& options) {
        Targets* targets = nullptr;
        Measured result;
        {
            const std::lock_guard guard(lock_);
            if (!tried_) open();
            targets = targets_.get();
            result.problem = problem_;
        }
        if (targets == nullptr) return result;
        storage::MonotonicClock clock;
        return probe::measure(*targets, target, options, clock);
    }

private:
    void open() {
        tried_ = true;
        auto found = targets_for(handle_.path, rule_);
        if (found && fingerprint(*found.value()) == expected_) {
            targets_ = found.take();
            return;
        }
        std::array<char, 256> host{};
        ::gethostname(host.data(), host.size() - 1);
        problem_ = "rank " + std::to_string(handle_.rank) + " on " + host.data() +
                   (found ? " sees other targets than rank 0" : ": " + found.error().message());
    }

    const Handle& handle_;
    const policy::FileRule& rule_;
    const std::int64_t expected_;
    std::mutex lock_;
    bool tried_ = false;
    std::unique_ptr<Targets> targets_;
    std::string problem_;
};

/// "t0 11.4 MiB/s, t3 (No space left on device)"; long lists are cut.
std::string list_of(const Targets& targets, const std::vector<Measured>& all, const std::vector<std::int32_t>& which) {
    constexpr std::size_t most = 16;
    std::string text;
    for (std::size_t i = 0; i < std::min(most, which.size()); ++i) {
        const auto at = static_cast<std::size_t>(which[i]);
        const Measured& one = all[at];
        text += (i == 0 ? "" : ", ") + targets.list()[at].name + " ";
        text += one.problem.empty() ? rough_size_text(static_cast<std::int64_t>(one.bytes_per_second)) + "/s"
                                    : "(" + one.problem + ")";
    }
    if (which.size() > most) text += " and " + std::to_string(which.size() - most) + " more";
    return text;
}

/// How it was found out: "8 storage targets probed in 0.42 s".
std::string beginning(const Targets& targets, const std::vector<Measured>& all, const std::optional<probe::Kept>& kept,
                      double took_s) {
    std::string text = std::to_string(targets.list().size()) + " storage targets";
    if (!storage::describe_rates(targets).empty()) text += " (token buckets)";
    std::array<char, 80> how{};
    if (kept) {
        std::snprintf(how.data(), how.size(), " as probed %lld s ago", static_cast<long long>(kept->age_s));
        return text + how.data();
    }
    std::int64_t bytes = 0;
    bool direct = true;
    for (const Measured& one : all) {
        bytes += one.bytes;
        direct = direct && (one.direct || !one.problem.empty());
    }
    std::snprintf(how.data(), how.size(), " probed in %.2f s (", took_s);
    return text + how.data() + rough_size_text(bytes) + (direct ? "" : ", fdatasync") + ")";
}

/// The first `count` by falling bandwidth, where the plan says how many; else those that are worth it. Rising.
std::vector<std::int32_t> targets_to_use(const probe::Selection& selection, std::int64_t count) {
    const auto all = static_cast<std::int64_t>(selection.curve.size());
    if (count == 0 || count > all) return selection.targets();
    std::vector<std::int32_t> first;
    for (std::int64_t i = 0; i < count; ++i) first.push_back(selection.curve[static_cast<std::size_t>(i)].target);
    std::sort(first.begin(), first.end());
    return first;
}

Placing choose_places(std::unique_ptr<Targets> targets, const std::vector<Measured>& all, const std::string& how,
                      std::int64_t count, double threshold, bool logs) {
    Placing placing;
    std::vector<std::int32_t> every(all.size());
    for (std::size_t i = 0; i < every.size(); ++i) every[i] = static_cast<std::int32_t>(i);
    const auto selection = probe::select(probe::rates_of(all), threshold);
    if (!selection) {
        placing.why_not = "none of the " + how + " can be used: " + list_of(*targets, all, every);
        return placing;
    }
    placing.chosen = targets_to_use(selection.value(), count);
    placing.count = count > 0 ? count : std::ssize(placing.chosen);
    std::vector<std::int32_t> others;
    std::set_difference(every.begin(), every.end(), placing.chosen.begin(), placing.chosen.end(),
                        std::back_inserter(others));
    placing.said =
        how + ", " + std::to_string(placing.chosen.size()) + " chosen: " + list_of(*targets, all, placing.chosen);
    if (!others.empty()) placing.said += "; left out: " + list_of(*targets, all, others);
    const bool directories = targets->abilities().directories;
    if (logs && !directories) {
        placing.why_not = std::string("logs can be placed on targets that are directories, and not on ") +
                          targets->kind() + "; give directories of theirs as targets";
        return placing;
    }
    if (directories) {
        for (const std::int32_t target : placing.chosen)
            placing.directories.push_back(targets->list()[static_cast<std::size_t>(target)].directory);
    } else {
        placing.targets = std::move(targets);
    }
    return placing;
}

}  // namespace

bool asks_for_targets(const planner::Strategy& strategy, const policy::FileRule* rule) {
    if (rule != nullptr && strategy.mapping.kind == planner::MappingKind::log) return rule->chooses_targets;
    if (rule == nullptr || strategy.mapping.kind != planner::MappingKind::subfiles) return false;
    return strategy.mapping.count == 0 || rule->targets.empty();
}

Placing find_places(Engine& engine, const Handle& handle, MPI_Comm comm, const policy::FileRule& rule, bool may_make) {
    const probe::Options options = options_of(rule.probe);
    const double threshold = rule.probe.threshold.value_or(probe::default_threshold);
    Prepared prepared;
    std::array<std::int64_t, 2> told{0, 0};  // targets to be probed, and which
    if (handle.rank == 0 && may_make) {
        const StorageScope scope(engine);
        prepared = look_for_targets(handle.path, rule, options);
        if (prepared.targets && !prepared.kept)
            told = {std::ssize(prepared.targets->list()), fingerprint(*prepared.targets)};
    }
    if (handle.size > 1) PMPI_Bcast(told.data(), static_cast<int>(told.size()), MPI_INT64_T, 0, comm);

    std::vector<Measured> all;
    const auto begin = std::chrono::steady_clock::now();
    if (told[0] > 0) {
        std::optional<OwnTargets> own(std::in_place, handle, rule, told[1]);
        all = probe_together(engine.host, comm, static_cast<std::int32_t>(told[0]), options, threshold,
                             [&](std::int32_t target) { return own->measure(target, options); });
        const StorageScope scope(engine);
        own.reset();
    }
    if (handle.rank != 0 || !may_make) return {};
    if (!prepared.targets) {
        Placing none;
        none.why_not = prepared.why_not;
        return none;
    }
    if (prepared.kept) {
        for (const double rate : prepared.kept->rates) {
            all.emplace_back().bytes_per_second = rate;
            if (rate == 0) all.back().problem = "could not be used";
        }
    }
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
    std::string how = beginning(*prepared.targets, all, prepared.kept, took.count());
    const StorageScope scope(engine);
    if (rule.probe.cache_s > 0 && !prepared.kept) {
        const int error = prepared.cache.empty()
                              ? ENOENT
                              : probe::write_cache(prepared.cache, probe::rates_of(all), seconds_since_1970());
        if (error != 0)
            how += ", not kept (" +
                   (prepared.cache.empty() ? "neither XDG_CACHE_HOME nor HOME is set"
                                           : prepared.cache + ": " + std::strerror(error)) +
                   ")";
    }
    return choose_places(std::move(prepared.targets), all, how, handle.strategy.mapping.count, threshold,
                         handle.strategy.mapping.kind == planner::MappingKind::log);
}

}  // namespace ioweir::engine
