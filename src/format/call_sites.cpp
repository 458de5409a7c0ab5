#include "format/call_sites.hpp"

#include <algorithm>
#include <cstring>

#include "base/utf8_text.hpp"
#include "format/load.hpp"

namespace ioweir::format {
namespace {

constexpr std::uint32_t unknown_module = 0xffff;

std::string hexadecimal(const char* bytes, std::size_t count) {
    static constexpr char digits[] = "0123456789abcdef";
    std::string out;
    for (std::size_t i = 0; i < count; ++i) {
        const auto byte = static_cast<unsigned char>(bytes[i]);
        out += digits[byte >> 4];
        out += digits[byte & 15];
    }
    return out;
}

}  // namespace

SiteNumbers::SiteNumbers(Trace& trace) : trace_(trace) { trace_.sites.emplace_back(); }

std::int32_t SiteNumbers::module(const Module& module) {
    const auto [place, fresh] =
        modules_.try_emplace(module.path + '\0' + module.build_id, static_cast<std::int32_t>(trace_.modules.size()));
    if (fresh) trace_.modules.push_back(module);
    return place->second;
}

std::uint32_t SiteNumbers::site(const std::vector<SiteFrame>& frames) {
    std::string key;
    for (const SiteFrame& frame : frames) {
        key.append(reinterpret_cast<const char*>(&frame.module), sizeof frame.module);
        key.append(reinterpret_cast<const char*>(&frame.address), sizeof frame.address);
    }
    const auto [place, fresh] = sites_.try_emplace(std::move(key), static_cast<std::uint32_t>(trace_.sites.size()));
    if (fresh) trace_.sites.push_back(frames);
    return place->second;
}

void CallSites::add_module(std::uint64_t image, const std::byte* record, std::size_t size, SiteNumbers& numbers) {
    const auto fields = load<ModuleRecord>(record);
    const char* text = reinterpret_cast<const char*>(record) + sizeof(ModuleRecord);
    const std::size_t bytes = std::min<std::size_t>(fields.build_id_bytes, sizeof fields.build_id);
    images_[image].modules[fields.module] = numbers.module(
        {utf8_text({text, ::strnlen(text, size - sizeof(ModuleRecord))}), hexadecimal(fields.build_id, bytes)});
}

void CallSites::add_site(std::uint64_t image, const std::byte* record, std::size_t size) {
    const auto fields = load<SiteRecord>(record);
    const std::size_t count = std::min<std::size_t>(fields.frames, (size - sizeof(SiteRecord)) / sizeof(std::uint64_t));
    std::vector<std::uint64_t>& frames = images_[image].frames[fields.site];
    frames.resize(count);
    if (count != 0) std::memcpy(frames.data(), record + sizeof(SiteRecord), count * sizeof(std::uint64_t));
}

template <typename Find>
auto CallSites::in_ancestry(std::uint64_t image, Find&& find) const -> decltype(find(std::declval<const Image&>())) {
    for (std::size_t steps = 0; image != 0 && steps <= images_.size(); ++steps) {
        const auto at = images_.find(image);
        if (at == images_.end()) return nullptr;
        if (const auto found = find(at->second)) return found;
        image = at->second.parent;
    }
    return nullptr;
}

void CallSites::settle(SiteNumbers& numbers) {
    for (auto& [image, contents] : images_) {
        for (const auto& [site, words] : contents.frames) {
            std::vector<SiteFrame> frames;
            frames.reserve(words.size());
            for (const std::uint64_t word : words) {
                const auto number = static_cast<std::uint32_t>(word >> 48);
                const std::int32_t* module = nullptr;
                if (number != unknown_module)
                    module = in_ancestry(image, [number](const Image& at) -> const std::int32_t* {
                        const auto found = at.modules.find(number);
                        return found != at.modules.end() ? &found->second : nullptr;
                    });
                frames.push_back({module != nullptr ? *module : -1, word & 0xffff'ffff'ffffU});
            }
            contents.sites[site] = numbers.site(frames);
        }
    }
}

std::uint32_t CallSites::number(std::uint64_t image, std::uint32_t site) const {
    if (site == 0) return 0;
    const std::uint32_t* found = in_ancestry(image, [site](const Image& at) -> const std::uint32_t* {
        const auto place = at.sites.find(site);
        return place != at.sites.end() ? &place->second : nullptr;
    });
    return found != nullptr ? *found : 0;
}

}  // namespace ioweir::format
