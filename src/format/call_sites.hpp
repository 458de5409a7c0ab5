// Call sites of one trace file: collects ModuleRecords and SiteRecords, gives every site a number in the whole trace.
// The same calls in the same modules are one site, whatever process they were made in.
// What does not live here: functions and source lines (python/ioweir/trace/callsites.py), recording (tracer/ring/call_site.cpp).
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "format/reader.hpp"

namespace ioweir::format {

/// Numbers for modules and sites that are shared by all files of a trace.
class SiteNumbers {
public:
    explicit SiteNumbers(Trace& trace);
    std::int32_t module(const Module& module);
    std::uint32_t site(const std::vector<SiteFrame>& frames);

private:
    Trace& trace_;
    std::unordered_map<std::string, std::int32_t> modules_;
    std::unordered_map<std::string, std::uint32_t> sites_;
};

class CallSites {
public:
    /// `parent`: the image it was forked from, 0 without one; it goes on using that one's sites and modules.
    void add_image(std::uint64_t image, std::uint64_t parent) { images_[image].parent = parent; }
    /// `record`: the bytes of a ModuleRecord or SiteRecord of `size` bytes, which the caller has checked to be there.
    void add_module(std::uint64_t image, const std::byte* record, std::size_t size, SiteNumbers& numbers);
    void add_site(std::uint64_t image, const std::byte* record, std::size_t size);
    /// Once every record is in.
    void settle(SiteNumbers& numbers);
    /// Index into Trace::sites of what `image` calls `site`; 0 when it is not known.
    [[nodiscard]] std::uint32_t number(std::uint64_t image, std::uint32_t site) const;

private:
    struct Image {
        std::unordered_map<std::uint32_t, std::int32_t> modules;
        std::unordered_map<std::uint32_t, std::vector<std::uint64_t>> frames;
        std::unordered_map<std::uint32_t, std::uint32_t> sites;
        std::uint64_t parent = 0;
    };
    /// What `find` gives for an image or its nearest ancestor that has it; null when none has.
    template <typename Find>
    auto in_ancestry(std::uint64_t image, Find&& find) const -> decltype(find(std::declval<const Image&>()));

    std::unordered_map<std::uint64_t, Image> images_;
};

}  // namespace ioweir::format
