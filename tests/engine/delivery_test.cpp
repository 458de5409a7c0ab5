// Run under mpiexec, with 1, 3 and 4 ranks.
#include "exchange/delivery.hpp"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "../mpi_cases/ranks.hpp"

namespace ioweir::exchange {
namespace {

using cases::Ranks;

/// What a rank sends to another in a shipment: of some length, which may be 0, and unlike any other's.
std::string text_of(int from, int to, int shipment, int longest) {
    const int length = (7 * from + 5 * to + 3 * shipment) % (longest + 1);
    std::string text;
    while (std::ssize(text) < length)
        text += std::to_string(from) + ">" + std::to_string(to) + "#" + std::to_string(shipment) + " ";
    text.resize(static_cast<std::size_t>(length));
    return text;
}

/// Sends all texts, and compares what came.
void deliver_texts(int shipments, int longest, std::int64_t most_bytes) {
    const Ranks ranks;
    const auto count = static_cast<std::size_t>(ranks.all);
    std::vector<std::vector<std::string>> out, in;
    std::vector<Shipment> all;
    for (int shipment = 0; shipment < shipments; ++shipment) {
        auto& to = out.emplace_back();
        auto& from = in.emplace_back();
        for (int rank = 0; rank < ranks.all; ++rank) {
            to.push_back(text_of(ranks.mine, rank, shipment, longest));
            from.emplace_back(text_of(rank, ranks.mine, shipment, longest).size(), '?');
        }
        Shipment& one = all.emplace_back(count);
        for (std::size_t rank = 0; rank < count; ++rank) {
            one.to[rank] = std::as_bytes(std::span(to[rank]));
            one.from[rank] = std::as_writable_bytes(std::span(from[rank]));
        }
    }
    ASSERT_TRUE(deliver(MPI_COMM_WORLD, all, most_bytes));
    for (int shipment = 0; shipment < shipments; ++shipment)
        for (int rank = 0; rank < ranks.all; ++rank) {
            const std::string& came = in[static_cast<std::size_t>(shipment)][static_cast<std::size_t>(rank)];
            if (rank == ranks.mine)
                EXPECT_EQ(came, std::string(came.size(), '?')) << "a rank's own stays where it is";
            else
                EXPECT_EQ(came, text_of(rank, ranks.mine, shipment, longest));
        }
}

TEST(Delivery, BringsEachRankWhatTheOthersHaveForIt) { deliver_texts(1, 40, most_message_bytes); }
TEST(Delivery, KeepsShipmentsApart) { deliver_texts(3, 40, most_message_bytes); }
TEST(Delivery, GoesInPartsWhereOneMessageIsTooSmall) { deliver_texts(2, 200, 7); }
TEST(Delivery, OfNothingIsNothing) { deliver_texts(2, 0, most_message_bytes); }

TEST(Delivery, OneAfterTheOtherDoesNotMixThem) {
    for (int i = 1; i < 20; ++i) deliver_texts(1 + i % 3, 10 * i, 16);
}

TEST(Delivery, TellsEachRankItsWords) {
    const Ranks ranks;
    std::vector<std::int64_t> mine, theirs(2 * static_cast<std::size_t>(ranks.all));
    for (int rank = 0; rank < ranks.all; ++rank) mine.insert(mine.end(), {100 * ranks.mine + rank, -1 - ranks.mine});
    ASSERT_TRUE(tell_each(MPI_COMM_WORLD, mine, theirs));
    for (int rank = 0; rank < ranks.all; ++rank) {
        EXPECT_EQ(theirs[2 * static_cast<std::size_t>(rank)], 100 * rank + ranks.mine);
        EXPECT_EQ(theirs[2 * static_cast<std::size_t>(rank) + 1], -1 - rank);
    }
}

TEST(Delivery, BroadcastsTextsOfAnyLength) {
    const Ranks ranks;
    for (const std::int64_t most : {most_message_bytes, std::int64_t{8}})
        for (int root = 0; root < ranks.all; ++root)
            for (const std::size_t length : {0, 1, 8, 9, 1000}) {
                std::string text = "its own, which may be longer";
                if (ranks.mine == root) text = std::string(length, static_cast<char>('a' + root)) + '\0';
                ASSERT_TRUE(broadcast(MPI_COMM_WORLD, text, root, most));
                EXPECT_EQ(text, std::string(length, static_cast<char>('a' + root)) + '\0');
            }
}

}  // namespace
}  // namespace ioweir::exchange
