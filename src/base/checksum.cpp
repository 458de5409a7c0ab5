#include "base/checksum.hpp"

#include <bit>
#include <cstring>

namespace ioweir {
namespace {

constexpr std::uint64_t prime1 = 0x9E3779B185EBCA87ULL, prime2 = 0xC2B2AE3D27D4EB4FULL, prime3 = 0x165667B19E3779F9ULL,
                        prime4 = 0x85EBCA77C2B2AE63ULL, prime5 = 0x27D4EB2F165667C5ULL;

template <typename T>
T load(const unsigned char* from) {
    T value;
    std::memcpy(&value, from, sizeof value);
    return value;
}

std::uint64_t round(std::uint64_t lane, std::uint64_t input) { return std::rotl(lane + input * prime2, 31) * prime1; }

std::uint64_t merge(std::uint64_t sum, std::uint64_t lane) { return (sum ^ round(0, lane)) * prime1 + prime4; }

}  // namespace

std::uint64_t checksum(const void* data, std::size_t bytes) {
    const auto* at = static_cast<const unsigned char*>(data);
    const unsigned char* const end = at + bytes;
    std::uint64_t sum = prime5;
    if (bytes >= 32) {
        std::uint64_t lanes[4] = {prime1 + prime2, prime2, 0, 0 - prime1};
        for (; end - at >= 32; at += 32) {
            for (int i = 0; i < 4; ++i) lanes[i] = round(lanes[i], load<std::uint64_t>(at + 8 * i));
        }
        sum = std::rotl(lanes[0], 1) + std::rotl(lanes[1], 7) + std::rotl(lanes[2], 12) + std::rotl(lanes[3], 18);
        for (const std::uint64_t lane : lanes) sum = merge(sum, lane);
    }
    sum += bytes;
    for (; end - at >= 8; at += 8) sum = std::rotl(sum ^ round(0, load<std::uint64_t>(at)), 27) * prime1 + prime4;
    if (end - at >= 4) {
        sum = std::rotl(sum ^ (load<std::uint32_t>(at) * prime1), 23) * prime2 + prime3;
        at += 4;
    }
    for (; at < end; ++at) sum = std::rotl(sum ^ (*at * prime5), 11) * prime1;
    sum = (sum ^ (sum >> 33)) * prime2;
    sum = (sum ^ (sum >> 29)) * prime3;
    return sum ^ (sum >> 32);
}

}  // namespace ioweir
