#include "kernels/runner/options.hpp"

#include <mpi.h>

#include <algorithm>
#include <charconv>
#include <climits>
#include <cstdio>
#include <cstdlib>

#include "base/nearest_name.hpp"

namespace ioweir::kernels {

void refuse(const Error& error) {
    int rank = 0;
    int running = 0;
    MPI_Initialized(&running);
    if (running != 0) MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (rank == 0) std::fprintf(stderr, "kernel_runner: %s\n", error.message().c_str());
    if (running != 0) MPI_Finalize();
    std::exit(2);
}

namespace {

std::vector<Way> parse_ways(const std::string& text, const std::string& usual_file) {
    std::vector<Way> ways;
    for (std::size_t begin = 0; begin <= text.size();) {
        const std::size_t comma = std::min(text.find(',', begin), text.size());
        const std::string word = text.substr(begin, comma - begin);
        const std::size_t colon = std::min(word.find(':'), word.size());
        const std::string name = word.substr(0, colon);
        std::vector<std::string_view> names;
        const Mode* found = nullptr;
        for (const Mode& mode : known_modes()) {
            names.push_back(mode.name);
            if (mode.name == name) found = &mode;
        }
        if (found == nullptr) refuse({"unknown mode", "'" + name + "'", name_remedy(name, names)});
        ways.push_back({found, colon < word.size() ? word.substr(colon + 1) : usual_file});
        begin = comma + 1;
    }
    return ways;
}

std::int64_t parse_number(const std::string& name, const std::string& text, std::int64_t least) {
    std::int64_t number = 0;
    const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (code != std::errc{} || end != text.data() + text.size() || number < least) {
        refuse({name + " takes a whole number from " + std::to_string(least) + " on", "'" + text + "'", ""});
    }
    return number;
}

double parse_amount(const std::string& name, const std::string& text, double below) {
    double number = 0;
    const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (code != std::errc{} || end != text.data() + text.size() || !(number >= 0) || number >= below) {
        char limit[32];
        std::snprintf(limit, sizeof limit, "%g", below);
        refuse({name + " takes a number from 0 to less than " + limit, "'" + text + "'", ""});
    }
    return number;
}

Setting parse_pair(const std::string& name, const std::string& text) {
    auto pair = parse_setting(text);
    if (!pair) refuse({name + " takes NAME=VALUE", "'" + text + "'", ""});
    return pair.take();
}

/// Options that are on or off.
struct Flag {
    std::string_view name;
    bool Options::* member;
};
constexpr Flag flags[] = {{"--verify", &Options::verify},
                          {"--keep", &Options::keep},
                          {"--sync", &Options::sync},
                          {"--cold", &Options::cold},
                          {"--warm-up", &Options::warm_up}};

/// Takes an option with its value; false: there is no such option.
bool take(Options& options, std::string& modes, const std::string& word, const std::string& value) {
    for (const Flag& flag : flags) {
        if (flag.name != word) continue;
        options.*flag.member = parse_number(word, value, 0) != 0;
        return true;
    }
    if (word == "--directory") {
        options.directory = value;
    } else if (word == "--file") {
        options.file = value;
    } else if (word == "--spread") {
        options.spread.push_back(value);
    } else if (word == "--mode") {
        modes = value;
    } else if (word == "--repeats") {
        options.repeats = parse_number(word, value, 1);
    } else if (word == "--salt") {
        options.salt = static_cast<std::uint64_t>(parse_number(word, value, 0));
    } else if (word == "--written-by") {
        options.written_by = static_cast<int>(std::min<std::int64_t>(parse_number(word, value, 1), INT_MAX));
    } else if (word == "--ranks") {
        options.ranks = static_cast<int>(std::min<std::int64_t>(parse_number(word, value, 1), INT_MAX));
    } else if (word == "--check-ranks") {
        options.check_ranks = static_cast<int>(std::min<std::int64_t>(parse_number(word, value, 1), INT_MAX));
    } else if (word == "--dummy") {
        options.dummy = parse_amount(word, value, 1);
    } else if (word == "--pause") {
        options.pause_s = parse_amount(word, value, 86400);
    } else if (word == "--hint") {
        const Setting hint = parse_pair(word, value);
        options.hints.emplace_back(hint.name, hint.value);
    } else if (word == "--hdf5") {
        const Setting setting = parse_pair(word, value);
        if (const auto set = set_hdf5(options.hdf5, setting.name, setting.value); !set) refuse(set.error());
    } else {
        return false;
    }
    return true;
}

}  // namespace

Options parse(int argc, char** argv) {
    Options options;
    std::string modes = "mpiio";
    for (int i = 1; i < argc; ++i) {
        const std::string word = argv[i];
        if (word.rfind("--", 0) != 0) {
            if (options.kernel.empty()) {
                options.kernel = word;
                continue;
            }
            auto setting = parse_setting(word);
            if (!setting) refuse(setting.error());
            options.settings.push_back(setting.take());
            continue;
        }
        if (i + 1 == argc) refuse({"an option without a value", word, ""});
        const std::string value = argv[++i];
        if (take(options, modes, word, value)) continue;
        constexpr std::string_view known[] = {"--directory", "--file",  "--mode",       "--repeats", "--verify",
                                              "--keep",      "--sync",  "--cold",       "--warm-up", "--salt",
                                              "--hint",      "--hdf5",  "--written-by", "--dummy",   "--pause",
                                              "--spread",    "--ranks", "--check-ranks"};
        refuse({"unknown option", "'" + word + "'", name_remedy(word, known)});
    }
    if (options.kernel.empty()) refuse({"no kernel is named", "", "write KERNEL [NAME=VALUE...] --directory DIR"});
    if (options.directory.empty()) refuse({"--directory is needed", "", "name where the file is to be written"});
    if (options.file.empty()) options.file = options.kernel + ".data";
    options.ways = parse_ways(modes, options.file);
    return options;
}

bool writes_arrays(const Mode& mode) { return mode.name == netcdf_mode || mode.name == hdf5_mode; }

void check_arrays(const Options& options, const Kernel& kernel) {
    const ArrayFile arrays = kernel.arrays();
    for (const Way& way : options.ways) {
        if (!writes_arrays(*way.mode)) {
            if (options.written_by == 0) continue;
            refuse({"--written-by is for modes netcdf and hdf5 alone", std::to_string(options.written_by),
                    "give --mode netcdf"});
        }
        const bool netcdf = way.mode->name == netcdf_mode;
        if (!arrays.arrays.empty() && !(netcdf && arrays.only_hdf5)) continue;
        std::string known;
        for (const KernelInfo& info : known_kernels()) {
            const auto one = make_kernel(info.name, 1, {});
            if (!one || one.value()->arrays().arrays.empty() || (netcdf && one.value()->arrays().only_hdf5)) continue;
            known += (known.empty() ? "" : ", ") + std::string(info.name);
        }
        refuse({std::string("a kernel that no program writes through ") + (netcdf ? "netCDF" : "HDF5"),
                "'" + options.kernel + "'", "take one of " + known});
    }
}

}  // namespace ioweir::kernels
