// The one asynchronous type: a coroutine that runs on the caller's executor.
#pragma once

#include <boost/asio/awaitable.hpp>

namespace atl {

template <class T>
using Task = boost::asio::awaitable<T>;

}  // namespace atl
