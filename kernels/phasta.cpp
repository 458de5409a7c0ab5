// PHASTA: checkpoints of an unstructured flow solver, field by field, the blocks of all parts together in each, as its library lays them out without alignment.
//
// Source: Liu, Fu, Carothers et al., "Massively Parallel I/O for Partitioned Solver Systems", sections 2 and 3.1: three fields (solution, its time derivative, errors); 60 GB in
// all on 16K to 128K parts, strong scaling, about 500 KB a part on 128K, and a little more in all with more parts, since their borders are stored twice. Here 60 MB by default.
// A block is a header of 1,024 bytes and the items: of each node 5 doubles (pressure, velocity, temperature), 5 and 10. Each call moves one field of one part of each rank. What a file
// holds besides (master header and table) is left out: one rank writes it once.
// Parts differ: part g has one, two or three fiftieths more nodes than the least, by turns.
// Example: data=320 KB on 4 ranks with one part each: 500 nodes, and 10, 20, 30, 10 more on their borders.
#include <array>

#include "kernels/entries.hpp"

namespace ioweir::kernels {

namespace {

constexpr std::int64_t header_bytes = 1024;
constexpr std::array<std::int64_t, 3> doubles_of_node{5, 5, 10};
constexpr std::int64_t node_bytes = 8 * (5 + 5 + 10);
constexpr std::int64_t phasta_unevenness = 3;

class Phasta final : public Kernel {
public:
    Phasta(int ranks, std::int64_t parts, std::int64_t nodes) : ranks_(ranks), parts_(parts), nodes_(nodes) {}

    [[nodiscard]] std::string_view name() const override { return phasta_entry.info.name; }
    [[nodiscard]] int ranks() const override { return ranks_; }
    [[nodiscard]] std::int64_t calls() const override { return std::ssize(doubles_of_node) * parts_; }
    [[nodiscard]] std::int64_t file_bytes() const override { return call_begin(calls()); }
    [[nodiscard]] FileType file_type() const override { return FileType::offset; }
    [[nodiscard]] bool one_view() const override { return false; }

    [[nodiscard]] std::vector<Box> boxes(int rank, std::int64_t call) const override {
        const std::int64_t first = bytes_before(rank, call);
        return {Box{call_begin(call),
                    1,
                    {bytes_before(ranks_, call)},
                    {bytes_before(rank + std::int64_t{1}, call) - first},
                    {first}}};
    }

private:
    /// Of the parts that the ranks before `rank` move in a call; part g of rank r is r * parts + g.
    [[nodiscard]] std::int64_t nodes_before(std::int64_t rank, std::int64_t part_of_rank) const {
        const std::int64_t more = nodes_ / 50;
        std::int64_t extra = 0;
        for (std::int64_t turn = 0; turn < phasta_unevenness; ++turn) {  // ranks turn, turn + 3, ... have equally many
            const std::int64_t count = (rank + phasta_unevenness - 1 - turn) / phasta_unevenness;
            extra += count * (1 + (turn * parts_ + part_of_rank) % phasta_unevenness);
        }
        return rank * nodes_ + extra * more;
    }
    [[nodiscard]] std::int64_t bytes_before(std::int64_t rank, std::int64_t call) const {
        const std::int64_t doubles = doubles_of_node[static_cast<std::size_t>(call / parts_)];
        return rank * header_bytes + 8 * doubles * nodes_before(rank, call % parts_);
    }
    [[nodiscard]] std::int64_t call_begin(std::int64_t call) const {
        std::int64_t begin = 0;
        for (std::int64_t before = 0; before < call; ++before) begin += bytes_before(ranks_, before);
        return begin;
    }

    int ranks_;
    std::int64_t parts_;
    std::int64_t nodes_;
};

KernelResult make_phasta(int ranks, const Values& values) {
    const auto data = values.size("data");
    if (!data) return data.error();
    const auto parts = values.count("parts");
    if (!parts) return parts.error();
    constexpr std::int64_t most_parts = 4096;
    if (parts.value() > most_parts)
        return Error{"kernel parameter parts: too many parts of a rank", values.text("parts"), "take 4096 at most"};
    const std::int64_t nodes = data.value() / node_bytes / parts.value() / ranks;
    if (nodes < 1)
        return Error{"kernel parameter data: less than a node of 160 bytes for each part", values.text("data"),
                     "take more data, or fewer ranks or parts"};
    const auto bytes =
        checked_file_bytes({ranks, parts.value(), nodes + 3 * (nodes / 50) + 3 * header_bytes, node_bytes});
    if (!bytes) return bytes.error();  // a little more than it is
    return KernelResult(std::make_shared<const Phasta>(ranks, parts.value(), nodes));
}

constexpr Parameter phasta_parameters[] = {
    {"data", "60 MB", "bytes of all fields and parts, without headers and borders"},
    {"parts", "1", "parts of a rank, at most 4096; each is moved in calls of its own"},
};

}  // namespace

const KernelEntry phasta_entry{
    {"phasta", "PHASTA: checkpoints of an unstructured flow solver, field by field and part by part",
     "Liu, Fu, Carothers et al., sections 2 and 3.1, scaled to a thousandth", phasta_parameters},
    make_phasta};

}  // namespace ioweir::kernels
