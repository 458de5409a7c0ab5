// Python bindings of storage targets: which there are, how fast they are, which to use. What does not live here: the command line.
#include <nanobind/nanobind.h>
#include <nanobind/stl/vector.h>

#include <memory>
#include <string>

#include "bindings/planner.hpp"
#include "bindings/rows.hpp"
#include "bindings/text.hpp"
#include "probe/measure.hpp"
#include "probe/selection.hpp"
#include "storage/targets.hpp"

namespace nb = nanobind;

namespace {

nb::dict describe_targets(const std::string& path) {
    const auto targets = ioweir::value_of(ioweir::storage::find_targets(path));
    const ioweir::storage::Abilities abilities = targets->abilities();
    nb::list rows;
    for (std::size_t i = 0; i < targets->list().size(); ++i) {
        const ioweir::storage::Target& target = targets->list()[i];
        nb::dict row;
        row["name"] = target.name;
        row["directory"] = target.directory;
        row["token_bucket_rate"] = targets->rate(static_cast<std::int32_t>(i));
        row["unusable"] = target.unusable;
        rows.append(row);
    }
    nb::dict described;
    described["kind"] = targets->kind();
    described["stripes"] = abilities.stripes;
    described["sets_stripe_size"] = abilities.sets_size;
    described["reads_back"] = abilities.reads_back;
    described["limits"] = abilities.limits;
    described["targets"] = rows;
    return described;
}

nb::list probe_targets(const std::string& path, double discard_s, double window_s, std::int64_t bytes, int repetitions,
                       int at_once, int confirmations, double threshold) {
    ioweir::probe::Options options;
    options.discard_ns = static_cast<std::int64_t>(discard_s * 1e9);
    options.window_ns = static_cast<std::int64_t>(window_s * 1e9);
    options.bytes = bytes;
    options.repetitions = repetitions;
    options.at_once = at_once;
    options.confirmations = confirmations;
    if (const auto error = ioweir::probe::check(options)) ioweir::raise_value_error(error->message());
    const auto targets = ioweir::value_of(ioweir::storage::find_targets(path));
    std::vector<ioweir::probe::Measured> measured;
    {
        const nb::gil_scoped_release released;
        measured = ioweir::probe::probe_all(*targets, options, threshold);
    }
    return ioweir::rows_of(measured, [&](nb::dict& row, const ioweir::probe::Measured& one) {
        row["bytes_per_second"] = one.bytes_per_second;
        row["each"] = one.each;
        row["bytes"] = one.bytes;
        row["elapsed_ns"] = one.elapsed_ns;
        row["token_bucket_rate"] = one.token_bucket_rate;
        row["confirmed"] = one.confirmed;
        row["direct"] = one.direct;
        row["alone"] = one.alone;
        row["problem"] = one.problem;
    });
}

nb::dict select_targets(const std::vector<double>& bytes_per_second, double threshold) {
    const auto selection = ioweir::value_of(ioweir::probe::select(bytes_per_second, threshold));
    nb::list curve;
    for (const ioweir::probe::Step& step : selection.curve) {
        nb::dict row;
        row["target"] = step.target;
        row["bytes_per_second"] = step.bytes_per_second;
        row["aggregate"] = step.aggregate;
        row["slope"] = step.slope;
        curve.append(row);
    }
    nb::dict row;
    row["curve"] = curve;
    row["chosen"] = selection.targets();
    return row;
}

void set_token_bucket(const std::string& state, std::size_t targets, std::size_t target,
                      std::int64_t bytes_per_second) {
    if (target >= targets || bytes_per_second < 0) throw nb::value_error("no such target, or a negative rate");
    ioweir::value_of(ioweir::storage::TargetQueues::open(state, targets))->set_rate(target, bytes_per_second);
}

}  // namespace

void bind_probe(nb::module_& m) {
    m.def("describe_targets", &describe_targets, nb::arg("path"),
          "The storage targets in effect at a path, and what their driver can do. Raises ValueError where there are "
          "none.");
    m.def("probe_targets", &probe_targets, nb::arg("path"), nb::arg("discard_s"), nb::arg("window_s"), nb::arg("bytes"),
          nb::arg("repetitions"), nb::arg("at_once"), nb::arg("confirmations"), nb::arg("threshold"),
          "Measures all targets in effect at a path (src/probe/measure.hpp), a thread each, those again that the "
          "threshold would leave out, and returns a dict for "
          "each.");
    m.def(
        "select_targets", &select_targets, nb::arg("bytes_per_second"), nb::arg("threshold"),
        "Which targets to use: `curve` by falling bandwidth, `chosen` as ascending indices (src/probe/selection.hpp).");
    m.def("set_token_bucket", &set_token_bucket, nb::arg("state"), nb::arg("targets"), nb::arg("target"),
          nb::arg("bytes_per_second"),
          "Changes the rate of a token bucket for all processes that share `state`; 0: as they were configured.");
    m.attr("default_threshold") = ioweir::probe::default_threshold;
}
