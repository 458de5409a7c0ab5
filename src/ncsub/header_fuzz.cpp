// Fuzzes the headers of netCDF files and what divided files say in them: a header that is read is written and read back as it was; a file that
// is divided is divided in the same way once its master is written anew, and its own subfiles are taken for its subfiles; whatever the numbers
// are, what follows from them stays within 63 bits and ends.
// An input: a byte (1: the master lies in the first half of what follows and a subfile in the second), and the header's bytes.
#include <algorithm>
#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/fuzz_input.hpp"
#include "base/fuzz_target.hpp"
#include "ncsub/files.hpp"
#include "ncsub/header.hpp"
#include "ncsub/linear.hpp"
#include "ncsub/logical.hpp"
#include "ncsub/plain_names.hpp"

namespace ioweir {
namespace {

using ncsub::Header;
using ncsub::Logical;

constexpr std::int64_t most_subfiles = 8;

void check_error(const Error& error, std::size_t bytes) {
    require(!error.what.empty(), "an error without words");
    require(error.message().size() < 2000 + 8 * bytes, "an error much longer than the file");
}

void check_header(const Header& header) {
    for (const ncsub::Dimension& dimension : header.dimensions) require(dimension.length >= 0, "a dimension's length");
    for (const ncsub::Variable& variable : header.variables) {
        require(variable.vsize >= 0 && variable.begin >= 0, "the place of a variable");
        for (const std::int64_t id : variable.dimensions)
            require(id >= 0 && id < std::ssize(header.dimensions), "the id of a dimension");
    }
    require(header.records >= -1, "the number of records");
    const std::string again = ncsub::encode(header);
    const auto decoded = ncsub::decode(again, "again");
    require(decoded.ok() && decoded.value().bytes == std::ssize(again), "a header that is written is read");
    require(decoded.value().header == header, "a header that is written is read as it was");
    // Runs of the file as requests of the interface.
    const ncsub::Places places(header);
    for (const ncsub::Variable& variable : header.variables) {
        constexpr std::int64_t bytes = 96;
        if (variable.begin > INT64_MAX - bytes) continue;
        std::vector<ncsub::Elements> elements;
        if (places.add_run(variable.begin, bytes, elements)) require(!elements.empty(), "the elements of a run");
    }
}

/// Everything in `copies` lies in the files, and there are few enough of them that somebody waits for it.
void check_copies(const Logical& logical, const Header& master, std::span<const Header> subfiles) {
    std::int64_t left = 2'000;
    ncsub::for_each_part(logical, master, subfiles, [&](const ncsub::Copies& copies) {
        const ncsub::Copy first = copies.at(0), last = copies.at(copies.count() - 1);
        require(copies.count() > 0 && first.from <= last.from && first.to <= last.to, "pieces one behind the other");
        require(last.from >= 0 && last.from <= INT64_MAX - last.bytes && last.to <= INT64_MAX - last.bytes,
                "pieces within 63 bits");
        return true;
    });
    ncsub::for_each_copy(logical, master, subfiles, [&](const ncsub::Copy& copy) {
        require(copy.bytes >= 0 && copy.from >= 0 && copy.to >= 0 && copy.from <= INT64_MAX - copy.bytes &&
                    copy.to <= INT64_MAX - copy.bytes,
                "a copy within 63 bits");
        require(copy.subfile >= -1 && copy.subfile < logical.subfiles, "the subfile of a copy");
        return --left > 0;
    });
}

void check_divided(const Header& master, const Header* given, std::size_t bytes) {
    const auto found = ncsub::logical_of(master, "master");
    if (!found) return check_error(found.error(), bytes);
    const Logical& logical = found.value();
    require(logical.divisions.size() == logical.header.variables.size(), "a division for each variable");
    for (const auto& division : logical.divisions) {
        if (!division) continue;
        require(division->subfiles() == logical.subfiles, "the number of subfiles of a variable");
        require(division->dimension >= 0 && division->dimension < std::ssize(division->dimension_ids),
                "the dimension that is divided");
        require(std::is_sorted(division->boundaries.begin(), division->boundaries.end()), "boundaries in order");
    }
    if (logical.subfiles > most_subfiles) return;
    if (ncsub::check_sizes(logical.header, "master")) return;
    for (std::int64_t number = 0; number < logical.subfiles; ++number) {
        const std::string path = ncsub::subfile_path(logical, "/folder/master.nc", number);
        require(path.starts_with("/folder/") && path.find('/', 8) == std::string::npos, "a subfile beside the master");
    }
    check_header(logical.header);
    std::vector<Header> subfiles;
    for (std::int64_t number = 0; number < logical.subfiles; ++number)
        subfiles.push_back(ncsub::subfile_of(logical, number));
    if (given != nullptr) {
        const auto problem = ncsub::check_subfile(logical, *given, 0, "subfile");
        if (problem) {
            check_error(*problem, bytes);
        } else {
            subfiles[0] = *given;
        }
    }
    for (std::size_t number = 0; number < subfiles.size(); ++number) {
        const auto problem =
            ncsub::check_subfile(logical, subfiles[number], static_cast<std::int64_t>(number), "subfile");
        require(!problem, "a subfile that is made for a file is one of its");
    }
    Logical with_records = logical;
    with_records.header.records = ncsub::records_of(master, subfiles);
    if (!ncsub::check_sizes(with_records.header, "master")) check_copies(with_records, master, subfiles);
}

void read(const std::string& bytes, const Header* subfile) {
    const auto decoded = ncsub::decode(bytes, "file");
    if (!decoded) return check_error(decoded.error(), bytes.size());
    require(decoded.value().bytes <= std::ssize(bytes), "a header within its file");
    if (decoded.value().bytes == 0) return;
    const Header& header = decoded.value().header;
    check_header(header);
    if (ncsub::is_master(header)) return check_divided(header, subfile, bytes.size());
    if (!ncsub::has_plain_names(header)) return;
    const auto names = ncsub::plain_subfiles(header, "/folder/master.nc");
    if (!names) return check_error(names.error(), bytes.size());
    for (const std::string& name : names.value())
        require(!name.empty() && name.find('/') == std::string::npos, "a subfile beside the master");
    if (subfile == nullptr || std::ssize(names.value()) > most_subfiles) return;
    const std::vector<Header> subfiles(names.value().size(), *subfile);
    const auto own = ncsub::with_own_names(header, subfiles, "/folder/master.nc");
    if (!own) return check_error(own.error(), bytes.size());
    check_divided(own.value(), subfile, bytes.size());
}

/// t unlimited, z 10, y 6: a divided cube(z, y), records speed(t, z), and a vector w(y) that stays whole.
Header whole(int version) {
    Header header;
    header.version = version;
    header.records = 3;
    header.dimensions = {{"t", 0}, {"z", 10}, {"y", 6}};
    header.attributes = {ncsub::text_attribute("title", "a seed"), ncsub::int_attribute("numbers", {1, -2})};
    header.variables = {{"cube", {1, 2}, {ncsub::text_attribute("units", "K")}, ncsub::Type::float64, 480, 1000},
                        {"speed", {0, 1}, {}, ncsub::Type::int16, 20, 2000},
                        {"w", {2}, {}, ncsub::Type::text, 8, 1480}};
    if (version == 5) header.variables[2].type = ncsub::Type::uint64;
    return header;
}

Logical divided(int version) {
    Logical logical;
    logical.header = whole(version);
    logical.divisions = {ncsub::Division{0, {1, 2}, {0, 5, 10}}, ncsub::Division{1, {0, 1}, {0, 4, 10}}, std::nullopt};
    logical.subfiles = 2;
    logical.id = "0123456789abcdef";
    return logical;
}

std::string halves(const Header& master, const Header& subfile) {
    const std::string one = ncsub::encode(master), other = ncsub::encode(subfile);
    return FuzzSeed()
        .number<std::uint8_t>(1)
        .number(static_cast<std::uint16_t>(one.size()))
        .text(one)
        .text(other)
        .bytes();
}

/// As Son et al. name things.
std::string plain() {
    Header master = whole(1);
    master.variables = {{"cube", {}, {}, ncsub::Type::float64, 8, 1000}};
    master.variables[0].attributes = {ncsub::int_attribute("num_subfiles", {1}),
                                      ncsub::int_attribute("ndims_org", {2})};
    master.attributes = {ncsub::text_attribute("subfile 0", "master.nc.0")};
    Header part = whole(1);
    part.dimensions = {{"z.cube", 10}, {"y.cube", 6}};
    part.variables = {{"cube", {0, 1}, {ncsub::int_attribute("range(z)", {0, 9})}, ncsub::Type::float64, 480, 1000}};
    return halves(master, part);
}

}  // namespace

std::vector<std::string> fuzz_seeds() {
    std::vector<std::string> seeds{plain()};
    for (const int version : {1, 2, 5}) {
        const Logical logical = divided(version);
        seeds.push_back(std::string(1, '\0') + ncsub::encode(whole(version)));
        seeds.push_back(std::string(1, '\0') + ncsub::encode(ncsub::master_of(logical)));
        seeds.push_back(halves(ncsub::master_of(logical), ncsub::subfile_of(logical, 0)));
    }
    return seeds;
}

}  // namespace ioweir

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    using namespace ioweir;
    FuzzInput input(data, size);
    if (input.number<std::uint8_t>() % 2 == 0) {
        read(input.rest(), nullptr);
        return 0;
    }
    const std::string master = input.text(input.number<std::uint16_t>());
    const auto subfile = ncsub::decode(input.rest(), "subfile");
    read(master, subfile && subfile.value().bytes > 0 ? &subfile.value().header : nullptr);
    return 0;
}
