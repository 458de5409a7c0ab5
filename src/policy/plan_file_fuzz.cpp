// Fuzzes plan files: a plan that is read can be written, and is read again as the same rules; matching a path ends. And what hints and options
// of the command line are made of: sizes, and the words of a strategy.
// An input: a byte (0: a plan's text, 1: a size, 2: a strategy's words), and the text.
#include <cstdint>
#include <string>
#include <vector>

#include "base/fuzz_input.hpp"
#include "base/fuzz_target.hpp"
#include "base/size_text.hpp"
#include "policy/plan_file.hpp"

namespace ioweir {
namespace {

using policy::FileRule;
using policy::PlanFile;

void check_error(const Error& error, std::size_t bytes) {
    require(!error.what.empty(), "an error without words");
    require(error.message().size() < 1000 + 8 * bytes, "an error much longer than the text");
}

/// But for the line, and which keys stood there.
bool same(const FileRule& a, FileRule b) {
    b.line = a.line;
    b.given = a.given;
    return a == b;
}

void read_plan(const std::string& text) {
    const auto parsed = policy::parse_plan_file(text, "plan.toml");
    if (!parsed) return check_error(parsed.error(), text.size());
    const PlanFile& plan = parsed.value();
    require(!plan.files.empty(), "a plan with a rule");
    const std::string written = policy::to_toml(plan);
    const auto again = policy::parse_plan_file(written, "again.toml");
    if (!again) std::fprintf(stderr, "%s\n%s\n", written.c_str(), again.error().message().c_str());
    require(again.ok() && again.value().files.size() == plan.files.size(), "a plan that is written is read");
    for (std::size_t i = 0; i < plan.files.size(); ++i)
        require(same(plan.files[i], again.value().files[i]), "a rule that is written is read as it was");
    const PlanFile all = policy::with_subfile_rules(plan);
    for (const char* path : {"/scratch/run/out.chk.17", "a", ""}) {
        const FileRule* const rule = all.match(path);
        require(rule == nullptr || (rule >= all.files.data() && rule < all.files.data() + all.files.size()),
                "a rule of the plan");
    }
}

void read_size(const std::string& text) {
    const auto size = parse_size(text);
    if (!size) return check_error(size.error(), text.size());
    require(size.value() >= 0, "a size");
    const auto again = parse_size(exact_size_text(size.value()));
    require(again.ok() && again.value() == size.value(), "a size that is written is read as it was");
    require(!rough_size_text(size.value()).empty(), "a size for a person");
}

template <typename Value>
void read_word(const std::string& text, Result<Value> (*parse)(std::string_view)) {
    const auto value = parse(text);
    if (!value) return check_error(value.error(), text.size());
    const auto again = parse(planner::to_text(value.value()));
    require(again.ok() && again.value() == value.value(), "a word that is written is read as it was");
}

void read_words(const std::string& text) {
    read_word<planner::Mapping>(text, planner::parse_mapping);
    read_word<planner::Writers>(text, planner::parse_writers);
    read_word<planner::Domains>(text, planner::parse_domains);
    read_word<planner::Order>(text, planner::parse_order);
}

}  // namespace

std::vector<std::string> fuzz_seeds() {
    std::vector<std::string> seeds;
    for (const char* plan :
         {"[[file]]\nmatch = \"*.chk*\"\nwriters = \"auto\"\n",
          "[[file]]\nmatch = \"a\"\nmapping = \"subfiles:4\"\nwriters = \"aggregators:2\"\ndomains = \"cyclic\"\norder "
          "= \"sequential\"\n"
          "buffer = \"16 MiB\"\nstripe = { size = \"1 MiB\", count = 4 }\ntargets = [\"/t/0\", \"/t/1\"]\nrebalance = "
          "true\n",
          "# a comment\n[[file]]\nmatch = \"/x/*\"\nmapping = \"log\"\nvisibility = \"sync\"\ntargets = \"auto\"\n"
          "probe = { discard_ms = 5, window_ms = 20, threshold = 0.1 }\nprobe_cache = 60\n"
          "[[file]]\nmatch = \"*\"\nwriters = \"behind\"\nvisibility = \"sync\"\nset_size = \"at-once\"\n",
          "[[file]]\nmatch = \"*.nc\"\nnetcdf = { subfiles = 4, min_ndims = 1, par_dim = \"z\" }\n",
          "[[file]]\nmatch = \"*.h5\"\nwriters = \"everyone\"\n[file.hdf5]\nalignment = \"auto\"\nthreshold = \"64 "
          "KiB\"\n"
          "hold_metadata = \"all\"\nmetadata_block = \"1 MiB\"\nfill = \"never\"\nlibver = \"v110\"\nistore_k = "
          "\"auto\"\n"
          "collective_metadata = \"all\"\ntransfer = \"collective\"\nchunks = { \"*/v\" = [1, 20], w = [5] }\n",
          "[[file]]\nmatch = \"*.h5\"\nhdf5 = { page = \"1 MiB\", page_buffer = \"4 MiB\", small_data_block = \"1 "
          "MiB\", "
          "sieve_buffer = \"1 MiB\", chunks = \"learn\", memory_shape = \"file\" }\n",
          "[[file]]\nmatch = \"g\"\nmapping = \"grouped:3\"\nwriters = \"aggregators:auto\"\nthreshold = 0.25\nrounds "
          "= \"shortest\"\n"
          "order = \"contention-free\"\n"})
        seeds.push_back(std::string(1, '\0') + plan);
    for (const char* size : {"16 MiB", "0", "1GB", "9223372036854775807", "1536 KiB"})
        seeds.push_back(std::string(1, '\1') + size);
    for (const char* word :
         {"aggregators:4", "shared", "grouped:auto", "subfiles:8", "log", "cyclic", "contention-free"})
        seeds.push_back(std::string(1, '\2') + word);
    return seeds;
}

}  // namespace ioweir

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    using namespace ioweir;
    FuzzInput input(data, size);
    const auto what = input.number<std::uint8_t>() % 3;
    const std::string text = input.rest();
    if (what == 0) read_plan(text);
    if (what == 1) read_size(text);
    if (what == 2) read_words(text);
    return 0;
}
