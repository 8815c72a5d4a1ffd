// What of a message's fields passes between a visitor and a sandbox.
#pragma once

#include "api/preview/address.h"
#include "api/service.h"
#include "http/head_parser.h"

namespace atl::api::preview {

// Towards the sandbox: without what belongs to the connection, without any credential of this
// server's, and with the truth about who asks.
http::Headers fields_inward(const Service& service, const http::Request& request,
                            const Address& address, const sandbox::Ingress& ingress);

std::string target_inward(const Service& service, std::string_view target);

// Back to the visitor: without what would reach beyond the port's own origin. On the API's origin
// (Form::Path) a page is confined to none at all, and cookies do not pass.
void clean_outward(const Service& service, const http::Request& request, const Address& address,
                   http::ResponseHead& head);

}  // namespace atl::api::preview
