// Whether two C functions can be called by one declaration.
#pragma once
#include <type_traits>

namespace ridge::cuda {

template <typename A>
constexpr bool kIsWhole = std::is_enum_v<A> || std::is_integral_v<A>;

template <typename A, typename B>
struct SameKind {
  static constexpr bool value = sizeof(A) == sizeof(B) &&
                                std::is_pointer_v<A> == std::is_pointer_v<B> &&
                                (std::is_pointer_v<A> || (kIsWhole<A> && kIsWhole<B>));
};
// An address may be a number.
template <typename A, typename B>
struct SameWord {
  static constexpr bool value = sizeof(A) == sizeof(B) && (std::is_pointer_v<A> || kIsWhole<A>)&&(
                                                              std::is_pointer_v<B> || kIsWhole<B>);
};

// The same number of parameters, each alike, and results alike.
template <template <typename, typename> class Alike, typename Ours, typename Theirs>
constexpr bool kAlike = false;
template <template <typename, typename> class Alike, typename R, typename... A, typename S,
          typename... B>
constexpr bool kAlike<Alike, R (*)(A...), S (*)(B...)> = [] {
  if constexpr (sizeof...(A) != sizeof...(B)) {
    return false;
  } else {
    return Alike<R, S>::value && (Alike<A, B>::value && ...);
  }
}();

template <typename Ours, typename Theirs>
constexpr bool kSameShape = kAlike<SameKind, Ours, Theirs>;

}  // namespace ridge::cuda
