// ChunkedVector: a list that grows at its end and never moves what it holds.
//
// References to elements stay valid while others are added, as with std::deque, but elements lie in
// blocks of kChunk instead of 512 bytes, so that large ones take an allocation for many.
#pragma once
#include <cstddef>
#include <iterator>
#include <stdexcept>
#include <utility>
#include <vector>

namespace ridge {

template <typename T>
class ChunkedVector {
 public:
  using value_type = T;

  class const_iterator {
   public:
    using iterator_category = std::random_access_iterator_tag;
    using value_type = T;
    using difference_type = std::ptrdiff_t;
    using pointer = const T*;
    using reference = const T&;

    const_iterator() = default;
    const_iterator(const ChunkedVector* list, size_t at) : list_(list), at_(at) {}
    reference operator*() const { return (*list_)[at_]; }
    pointer operator->() const { return &(*list_)[at_]; }
    reference operator[](difference_type n) const { return *(*this + n); }
    const_iterator& operator++() { return ++at_, *this; }
    const_iterator operator++(int) { return {list_, at_++}; }
    const_iterator& operator--() { return --at_, *this; }
    const_iterator operator--(int) { return {list_, at_--}; }
    const_iterator& operator+=(difference_type n) {
      at_ += static_cast<size_t>(n);
      return *this;
    }
    const_iterator& operator-=(difference_type n) { return *this += -n; }
    friend const_iterator operator+(const_iterator a, difference_type n) { return a += n; }
    friend const_iterator operator+(difference_type n, const_iterator a) { return a += n; }
    friend const_iterator operator-(const_iterator a, difference_type n) { return a -= n; }
    friend difference_type operator-(const const_iterator& a, const const_iterator& b) {
      return static_cast<difference_type>(a.at_) - static_cast<difference_type>(b.at_);
    }
    bool operator==(const const_iterator& other) const { return at_ == other.at_; }
    auto operator<=>(const const_iterator& other) const { return at_ <=> other.at_; }

   private:
    const ChunkedVector* list_ = nullptr;
    size_t at_ = 0;
  };

  ChunkedVector() = default;
  ChunkedVector(const ChunkedVector& other) { Append(other); }
  ChunkedVector(ChunkedVector&& other) noexcept
      : chunks_(std::move(other.chunks_)), size_(std::exchange(other.size_, 0)) {}
  ChunkedVector& operator=(ChunkedVector other) noexcept {
    std::swap(chunks_, other.chunks_);
    std::swap(size_, other.size_);
    return *this;
  }

  size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  const T& operator[](size_t i) const { return chunks_[i / kChunk][i % kChunk]; }
  T& operator[](size_t i) { return chunks_[i / kChunk][i % kChunk]; }
  const T& at(size_t i) const { return (*this)[Checked(i)]; }
  T& at(size_t i) { return (*this)[Checked(i)]; }
  const T& back() const { return (*this)[size_ - 1]; }
  const T& front() const { return (*this)[0]; }

  void push_back(T element) {
    if (size_ % kChunk == 0) chunks_.emplace_back().reserve(kChunk);
    chunks_.back().push_back(std::move(element));
    ++size_;
  }

  const_iterator begin() const { return {this, 0}; }
  const_iterator end() const { return {this, size_}; }
  auto rbegin() const { return std::make_reverse_iterator(end()); }
  auto rend() const { return std::make_reverse_iterator(begin()); }

 private:
  static constexpr size_t kChunk = 32;

  // Each copied chunk has room for all of its elements, so that later ones move nothing.
  void Append(const ChunkedVector& other) {
    chunks_.reserve(other.chunks_.size());
    for (const std::vector<T>& chunk : other.chunks_) {
      std::vector<T>& copy = chunks_.emplace_back();
      copy.reserve(kChunk);
      copy.insert(copy.end(), chunk.begin(), chunk.end());
    }
    size_ = other.size_;
  }

  size_t Checked(size_t i) const {
    if (i >= size_) throw std::out_of_range("ChunkedVector::at");
    return i;
  }

  std::vector<std::vector<T>> chunks_;
  size_t size_ = 0;
};

}  // namespace ridge
