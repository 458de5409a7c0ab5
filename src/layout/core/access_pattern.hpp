// AccessPattern: the file bytes that each rank moves in one collective call.
// What does not live here: memory buffers (engine), how they come out of file views (layout/mpi), generators of the kernels.
//
// The interface streams, because the largest simulated case has 131,072 ranks: a pattern may compute its extents when asked.
#pragma once

#include <cstdint>
#include <vector>

#include "base/function_ref.hpp"
#include "base/result.hpp"
#include "layout/core/extent.hpp"

namespace ioweir::layout {

using ExtentVisitor = FunctionRef<void(Extent)>;
using RankVisitor = FunctionRef<void(int)>;

/// All the file there can be: the window for "everything".
inline constexpr Extent whole_file{0, INT64_MAX};

class AccessPattern {
public:
    virtual ~AccessPattern() = default;

    [[nodiscard]] virtual int ranks() const = 0;
    /// Bytes of a rank; a byte that the rank names twice counts once.
    [[nodiscard]] virtual std::int64_t rank_bytes(int rank) const = 0;
    /// The smallest extent that holds all bytes of a rank; empty when it has none.
    [[nodiscard]] virtual Extent rank_bounds(int rank) const = 0;
    /// The rank's bytes inside the window, as a normal list (see extent.hpp), one extent at a time.
    virtual void visit(int rank, Extent window, ExtentVisitor visitor) const = 0;

    /// The smallest extent that holds all bytes of all ranks.
    [[nodiscard]] virtual Extent bounds() const;
    /// Parts of bounds() outside of which no rank has bytes: a normal list. What planning may leave out where ranks lie apart (IOR's
    /// segmented pattern); the bounds themselves where a pattern knows no better. All ranks have to be told the same.
    [[nodiscard]] virtual ExtentList covered() const;
    /// Every rank that has bytes in the window, ascending; ranks without any may be among them.
    virtual void visit_ranks(Extent window, RankVisitor visitor) const;
};

/// What all ranks' bounds cover together. Cost: sorting them.
[[nodiscard]] ExtentList union_of_rank_bounds(const AccessPattern& pattern);

/// The rank's bytes inside the window, in memory.
[[nodiscard]] ExtentList collect(const AccessPattern& pattern, int rank, Extent window = whole_file);

/// Every rank's extents in memory.
class ListedPattern final : public AccessPattern {
public:
    /// One list a rank, in any order; overlaps within a rank are joined. Refuses no ranks, negative offsets, unsound extents.
    [[nodiscard]] static Result<ListedPattern> make(std::vector<ExtentList> extents_of_ranks);

    [[nodiscard]] int ranks() const override { return static_cast<int>(extents_.size()); }
    [[nodiscard]] std::int64_t rank_bytes(int rank) const override { return bytes_[static_cast<std::size_t>(rank)]; }
    [[nodiscard]] Extent rank_bounds(int rank) const override;
    void visit(int rank, Extent window, ExtentVisitor visitor) const override;
    [[nodiscard]] Extent bounds() const override { return bounds_; }
    [[nodiscard]] ExtentList covered() const override { return union_of_rank_bounds(*this); }

private:
    explicit ListedPattern(std::vector<ExtentList> extents);

    std::vector<ExtentList> extents_;
    std::vector<std::int64_t> bytes_;
    Extent bounds_;
};

/// What one rank knows of a collective call: its own extents and, where the ranks have agreed on them, the bounds of all. Every
/// other rank appears to have no bytes. It refers to the caller's list, which is normal and outlives it.
class OwnPattern final : public AccessPattern {
public:
    OwnPattern(int ranks, int rank, ExtentSpan normal, Extent bounds_of_all)
        : ranks_(ranks), rank_(rank), extents_(normal), bounds_(bounds_of_all) {}

    [[nodiscard]] int ranks() const override { return ranks_; }
    [[nodiscard]] std::int64_t rank_bytes(int rank) const override;
    [[nodiscard]] Extent rank_bounds(int rank) const override;
    void visit(int rank, Extent window, ExtentVisitor visitor) const override;
    [[nodiscard]] Extent bounds() const override { return bounds_; }
    void visit_ranks(Extent window, RankVisitor visitor) const override;

private:
    int ranks_;
    int rank_;
    ExtentSpan extents_;
    Extent bounds_;
};

/// Block i of rank r lies at start + r * rank_stride + i * block_stride: IOR's contiguous (one block, or block_stride ==
/// block_bytes), segmented and strided patterns. Nothing is stored, however many ranks and blocks there are.
class StridedPattern final : public AccessPattern {
public:
    struct Shape {
        int ranks = 1;
        std::int64_t start = 0;
        std::int64_t block_bytes = 0;
        std::int64_t blocks = 1;
        std::int64_t block_stride_bytes =
            0;  ///< between blocks of one rank; at least block_bytes when there are several
        std::int64_t rank_stride_bytes = 0;  ///< between the first blocks of neighbouring ranks
    };

    [[nodiscard]] static Result<StridedPattern> make(Shape shape);

    [[nodiscard]] int ranks() const override { return shape_.ranks; }
    [[nodiscard]] std::int64_t rank_bytes(int rank) const override;
    [[nodiscard]] Extent rank_bounds(int rank) const override;
    void visit(int rank, Extent window, ExtentVisitor visitor) const override;
    [[nodiscard]] Extent bounds() const override;
    [[nodiscard]] ExtentList covered() const override { return union_of_rank_bounds(*this); }
    void visit_ranks(Extent window, RankVisitor visitor) const override;

private:
    explicit StridedPattern(const Shape& shape) : shape_(shape) {}

    Shape shape_;
};

}  // namespace ioweir::layout
