// IOR's two shared-file patterns: every rank's data in one segment, or dealt round among the ranks.
//
// Source: IOR (Shan and Shalf 2007). Parameters of Wang et al. 2014 (IBCS), section IV-B: 576 MB a process, 48 MB a call (6
// processes that are all aggregators, buffers of 4 MB and stripes of 1 MB there). "MB" is taken as MiB, as IOR does; the paper does
// not say which of the two patterns it ran.
//   segmented  rank r's block is one piece of the file: call c at r * data + c * transfer          (IOR -b 576m -t 48m)
//   strided    in each call the ranks' pieces alternate: piece k of call c at
//              c * ranks * transfer + (k * ranks + r) * piece                                       (IOR -b 48m -t 48m -s 12)
//              With pieces smaller than a call it is the interleaved pattern of IOR's strided datatypes.
// Through HDF5 (IOR -a HDF5: elements of 8 bytes, so that sizes have to be multiples of that) the file is one array data: (rank, place) for
// segmented, (round, rank, place) for strided.
#include "kernels/entries.hpp"

namespace ioweir::kernels {

namespace {

class Ior final : public Kernel {
public:
    Ior(std::string_view name, int ranks, std::int64_t data, std::int64_t transfer, std::int64_t piece)
        : name_(name), ranks_(ranks), data_(data), transfer_(transfer), piece_(piece) {}

    [[nodiscard]] std::string_view name() const override { return name_; }
    [[nodiscard]] int ranks() const override { return ranks_; }
    [[nodiscard]] std::int64_t calls() const override { return data_ / transfer_; }
    [[nodiscard]] std::int64_t file_bytes() const override { return ranks_ * data_; }
    [[nodiscard]] FileType file_type() const override {
        return piece_ == 0 || piece_ == transfer_ ? FileType::offset : FileType::vector;
    }

    [[nodiscard]] std::vector<Box> boxes(int rank, std::int64_t call) const override {
        if (piece_ == 0) return {Box{0, 1, {ranks_, data_}, {1, transfer_}, {rank, call * transfer_}}};
        const std::int64_t pieces = transfer_ / piece_;
        return {Box{call * ranks_ * transfer_, 1, {pieces, ranks_, piece_}, {pieces, 1, piece_}, {0, rank, 0}}};
    }

    [[nodiscard]] ArrayFile arrays() const override {
        const std::int64_t line = piece_ == 0 ? data_ : piece_;
        if (line % element_bytes != 0 || transfer_ % element_bytes != 0) return {};
        ArrayFile file;
        if (piece_ > 0) file.dimensions.push_back({"round", data_ / piece_});
        file.dimensions.push_back({"rank", ranks_});
        file.dimensions.push_back({"place", line / element_bytes});
        file.arrays = {{"data", ElementType::int64, {}}};
        for (std::size_t d = 0; d < file.dimensions.size(); ++d) file.arrays.front().dimensions.push_back(d);
        return file;
    }
    [[nodiscard]] Slab slab(int rank, std::int64_t call) const override {
        if (piece_ == 0) return {0, {rank, call * transfer_ / element_bytes}, {1, transfer_ / element_bytes}};
        const std::int64_t rounds = transfer_ / piece_;
        return {0, {call * rounds, rank, 0}, {rounds, 1, piece_ / element_bytes}};
    }

private:
    static constexpr std::int64_t element_bytes = 8;  // through HDF5

    std::string_view name_;
    int ranks_;
    std::int64_t data_;
    std::int64_t transfer_;
    std::int64_t piece_;  ///< 0: segmented
};

Result<std::int64_t> whole_parts(const char* whole_name, std::int64_t whole, const char* part_name, std::int64_t part) {
    if (whole % part == 0) return whole / part;
    return Error{std::string("kernel parameter ") + part_name + " does not divide " + whole_name,
                 std::to_string(part) + " and " + std::to_string(whole) + " bytes",
                 "choose sizes that divide each other"};
}

KernelResult make_ior(std::string_view name, int ranks, const Values& values, bool strided) {
    const auto data = values.size("data");
    if (!data) return data.error();
    const auto transfer = values.size("transfer");
    if (!transfer) return transfer.error();
    if (const auto calls = whole_parts("data", data.value(), "transfer", transfer.value()); !calls)
        return calls.error();
    std::int64_t piece = 0;
    if (strided) {
        piece = transfer.value();
        if (!values.text("piece").empty()) {
            const auto given = values.size("piece");
            if (!given) return given.error();
            piece = given.value();
        }
        if (const auto pieces = whole_parts("transfer", transfer.value(), "piece", piece); !pieces)
            return pieces.error();
    }
    if (const auto bytes = checked_file_bytes({ranks, data.value()}); !bytes) return bytes.error();
    return KernelResult(std::make_shared<const Ior>(name, ranks, data.value(), transfer.value(), piece));
}

KernelResult make_segmented(int ranks, const Values& values) {
    return make_ior(ior_segmented_entry.info.name, ranks, values, false);
}
KernelResult make_strided(int ranks, const Values& values) {
    return make_ior(ior_strided_entry.info.name, ranks, values, true);
}

constexpr Parameter segmented_parameters[] = {
    {"data", "576 MiB", "what a rank writes in all"},
    {"transfer", "48 MiB", "what a rank writes in one call"},
};
constexpr Parameter strided_parameters[] = {
    {"data", "576 MiB", "what a rank writes in all"},
    {"transfer", "48 MiB", "what a rank writes in one call"},
    {"piece", "", "bytes of a rank that lie together in the file; the whole transfer if not given"},
};
constexpr std::string_view source = "IOR; parameters of Wang et al. 2014 (IBCS), section IV-B";

}  // namespace

const KernelEntry ior_segmented_entry{
    {"ior-segmented", "every rank's data in one segment of a shared file", source, segmented_parameters},
    make_segmented};
const KernelEntry ior_strided_entry{
    {"ior-strided", "the ranks' pieces dealt round in a shared file", source, strided_parameters}, make_strided};

}  // namespace ioweir::kernels
