"""What derand is compared with: plain or published ways to do the same job. Nothing here makes a certificate."""
