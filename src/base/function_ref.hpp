// FunctionRef<R(Args...)>: a view of something callable, for visitors that are called and forgotten. Two words, no heap.
// What does not live here: owning callables (std::function).
#pragma once

#include <memory>
#include <type_traits>
#include <utility>

namespace ioweir {

template <typename Signature>
class FunctionRef;

/// Refers to a callable that outlives the call it is passed to. Never store one.
template <typename R, typename... Args>
class FunctionRef<R(Args...)> {
public:
    template <typename F>
        requires(!std::is_same_v<std::remove_cvref_t<F>, FunctionRef> && std::is_invocable_r_v<R, F&, Args...> &&
                 std::is_object_v<std::remove_reference_t<F>>)
    FunctionRef(F&& callable)
        : object_(const_cast<void*>(static_cast<const void*>(std::addressof(callable)))),
          call_([](void* object, Args... args) -> R {
              return (*static_cast<std::remove_reference_t<F>*>(object))(std::forward<Args>(args)...);
          }) {}

    R operator()(Args... args) const { return call_(object_, std::forward<Args>(args)...); }

private:
    void* object_;
    R (*call_)(void*, Args...);
};

}  // namespace ioweir
