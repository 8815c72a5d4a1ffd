#!/bin/sh
echo hello from the workspace
